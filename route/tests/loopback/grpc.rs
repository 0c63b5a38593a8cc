//! Calls of gRPC.

use axum::http::{HeaderMap, Request, Version};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::puppet::{Does, Puppet};
use crate::running::{Routing, Served, nobody, options, to};

/// The message of the answer, with what stands before and behind it.
pub(crate) async fn call(
    address: std::net::SocketAddr,
    method: &str,
    timeout: &str,
    message: &'static [u8],
) -> (HeaderMap, Bytes, HeaderMap) {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Full<Bytes>>();
    let request = Request::post(format!(
        "http://{address}/inference.GRPCInferenceService/{method}"
    ))
    .version(Version::HTTP_2)
    .header("content-type", "application/grpc")
    .header("te", "trailers")
    .header("grpc-timeout", timeout)
    .body(Full::new(message.into()))
    .unwrap();
    let (head, body) = client.request(request).await.unwrap().into_parts();
    let whole = body.collect().await.unwrap();
    let trailers = whole.trailers().cloned().unwrap_or_default();
    (head.headers, whole.to_bytes(), trailers)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_pass_with_their_trailers() {
    let served = Served::start().await;
    let router = Routing::before(&[served.address], options()).await;
    for (method, message) in [
        ("ServerReady", &b"\0\0\0\0\0"[..]),
        ("ModelMetadata", b"\0\0\0\0\x06\x0a\x04tiny"),
        ("ModelMetadata", b"\0\0\0\0\x06\x0a\x04tidy"),
        ("Nothing", b"\0\0\0\0\0"),
    ] {
        let direct = call(served.address, method, "5S", message).await;
        let routed = call(router.address, method, "5S", message).await;
        assert_eq!((&routed.1, &routed.2), (&direct.1, &direct.2), "{method}");
        for name in ["content-type", "grpc-status", "grpc-message"] {
            assert_eq!(routed.0.get(name), direct.0.get(name), "{method} {name}");
        }
    }
    // A stream without an end is not passed on.
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Full<Bytes>>();
    let watch = format!("http://{}/grpc.health.v1.Health/Watch", router.address);
    let request = Request::post(watch)
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc")
        .body(Full::new(Bytes::from_static(b"\0\0\0\0\0")))
        .unwrap();
    let refused = client.request(request).await.unwrap();
    assert_eq!(refused.headers()["grpc-status"], "12");
    let (_, body, trailers) = call(router.address, "ServerReady", "5S", b"\0\0\0\0\0").await;
    assert_eq!(
        (&body[..], trailers["grpc-status"].as_bytes()),
        (&b"\0\0\0\0\x02\x08\x01"[..], &b"0"[..])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_answers_has_grpcs_status() {
    let puppet = Puppet::that(Does::Stalls).await;
    let router = Routing::before(&[puppet.address], options()).await;
    let (head, ..) = call(router.address, "ModelInfer", "50m", b"\0\0\0\0\0").await;
    assert_eq!(head["grpc-status"], "4");
    let (_held, gone) = nobody();
    let router = Routing::start(vec![to(gone)], options()).await;
    let (head, ..) = call(router.address, "ModelInfer", "5S", b"\0\0\0\0\0").await;
    assert_eq!(head["grpc-status"], "14");
}
