//! The Open Inference Protocol over gRPC: real frames of HTTP/2, messages written by hand.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, Request};
use isovec::EmbeddingConfig;
use isovec_http::coding::Coding;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::running::{MODEL, Running, options, tiny, waits_for};

const TEXTS: [&str; 2] = ["the cat sat on a mat", "stöcks fell"];

/// What a call came to: the bytes of its message with the five before them, and its status.
pub(crate) struct Called {
    pub(crate) body: Vec<u8>,
    pub(crate) status: String,
    pub(crate) said: String,
    head: HeaderMap,
}

async fn call(server: &Running, method: &str, head: &[(&str, &str)], body: &[u8]) -> Called {
    call_at(server.address, method, head, body).await
}

pub(crate) async fn call_at(
    address: SocketAddr,
    method: &str,
    head: &[(&str, &str)],
    body: &[u8],
) -> Called {
    let path = format!("inference.GRPCInferenceService/{method}");
    call_path(address, &path, head, body).await
}

async fn call_path(address: SocketAddr, path: &str, head: &[(&str, &str)], body: &[u8]) -> Called {
    let stream = TcpStream::connect(address).await.unwrap();
    call_on(stream, path, head, body).await
}

/// A call on a connection of its own.
pub(crate) async fn call_on(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
    head: &[(&str, &str)],
    body: &[u8],
) -> Called {
    let (answer, driven) = begun_on(stream, path, head, body).await;
    let (head, mut stream) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data.unwrap();
        stream.flow_control().release_capacity(data.len()).unwrap();
        body.extend(data);
    }
    // A failure has no message, and its status in the head.
    let trailers = stream.trailers().await.unwrap();
    let last = trailers.as_ref().unwrap_or(&head.headers);
    let text = |name: &str| {
        last.get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let called = Called {
        status: text("grpc-status").unwrap(),
        said: text("grpc-message").unwrap_or_default(),
        body,
        head: head.headers,
    };
    driven.abort();
    called
}

/// The same up to the answer's head; what drives the connection is to be aborted at the end.
async fn begun_on(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    path: &str,
    head: &[(&str, &str)],
    body: &[u8],
) -> (http::Response<h2::RecvStream>, AbortHandle) {
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let driven = tokio::spawn(connection).abort_handle();
    let path = format!("http://test/{path}");
    let request = Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    let request = head
        .iter()
        .fold(request, |all, (name, value)| all.header(*name, *value));
    let request = request.body(()).unwrap();
    let (answer, mut sent) = client.send_request(request, false).unwrap();
    // A call that is refused for its head may be over already.
    let _ = sent.send_data(Bytes::copy_from_slice(body), true);
    let answer = answer.await.unwrap();
    assert_eq!(answer.status(), 200);
    (answer, driven)
}

/// A field of a message: its number, and bytes.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut length = bytes.len();
    let mut field = vec![number << 3 | 2];
    while length >= 0x80 {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    [&field[..], bytes].concat()
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.len() as u32);
    frame.put_slice(message);
    frame.to_vec()
}

/// The one field of a message with this number.
fn only(message: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = message;
    let mut found = None;
    while let [tag, ..] = *rest {
        rest = &rest[1..];
        let (mut value, mut shift) = (0_usize, 0);
        while let [byte, ..] = *rest {
            rest = &rest[1..];
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        if tag & 7 == 2 {
            let (bytes, behind) = rest.split_at(value);
            rest = behind;
            if tag >> 3 == wanted {
                assert_eq!(found.replace(bytes), None, "field {wanted} is there twice");
            }
        }
    }
    found
}

fn input(contents: &[u8]) -> Vec<u8> {
    let shape = field(3, &[TEXTS.len() as u8]);
    [
        field(1, b"text"),
        field(2, b"BYTES"),
        shape,
        contents.to_vec(),
    ]
    .concat()
}

/// A request for both texts, which are in the input or behind it.
fn infer(in_input: bool, more: &[u8]) -> Vec<u8> {
    let texts: Vec<u8> = match in_input {
        true => {
            let texts = TEXTS.iter().flat_map(|text| field(8, text.as_bytes()));
            let contents: Vec<u8> = texts.collect();
            field(5, &input(&field(5, &contents)))
        }
        false => {
            let spelled = TEXTS
                .iter()
                .flat_map(|text| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat());
            let spelled: Vec<u8> = spelled.collect();
            [field(5, &input(&[])), field(7, &spelled)].concat()
        }
    };
    framed(
        &[
            &field(1, MODEL.as_bytes())[..],
            &field(3, b"one"),
            &texts,
            more,
        ]
        .concat(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_the_librarys_bits() {
    let server = Running::start().await;
    let wanted = server.model.embed(TEXTS).await.unwrap();
    for in_input in [true, false] {
        let output = field(6, &field(1, b"embedding"));
        let head = [("grpc-timeout", "10S")];
        let called = call(&server, "ModelInfer", &head, &infer(in_input, &output)).await;
        assert_eq!((&*called.status, &*called.said), ("0", ""));
        let fingerprint = wanted.fingerprint().id();
        assert_eq!(called.head["x-isovec-fingerprint"], fingerprint);
        let (head, message) = called.body.split_at(5);
        assert_eq!(head[0], 0);
        assert_eq!(head[1..], (message.len() as u32).to_be_bytes());
        assert_eq!(only(message, 1), Some(MODEL.as_bytes()));
        assert_eq!(only(message, 3), Some(&b"one"[..]));
        let output = only(message, 5).unwrap();
        assert_eq!(only(output, 1), Some(&b"embedding"[..]));
        assert_eq!(only(output, 2), Some(&b"FP32"[..]));
        assert_eq!(only(output, 3), Some(&[2, 32][..]));
        let (values, rest) = only(message, 6).unwrap().as_chunks::<4>();
        assert!(rest.is_empty());
        let values: Vec<f32> = values.iter().map(|v| f32::from_le_bytes(*v)).collect();
        assert_eq!(values, wanted.as_slice());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_may_be_compressed() {
    let mut options = options();
    options.max_body = 10_000;
    let server = Running::with(EmbeddingConfig::default(), options).await;
    let plain = call(&server, "ModelInfer", &[], &infer(true, &[])).await;
    assert_eq!(plain.head["grpc-accept-encoding"], "identity,gzip,zstd");
    for coding in [Coding::Gzip, Coding::Zstd] {
        let small = |message: &[u8]| {
            let mut frame = framed(&coding.encode(message, 3).unwrap());
            frame[0] = 1;
            frame
        };
        let head = [("grpc-encoding", coding.name())];
        let message = small(&infer(true, &[])[5..]);
        let called = call(&server, "ModelInfer", &head, &message).await;
        assert_eq!(
            (called.status, called.body),
            ("0".into(), plain.body.clone())
        );
        // A call whose messages may be compressed may have one that is not.
        let called = call(&server, "ModelInfer", &head, &infer(true, &[])).await;
        assert_eq!(called.body, plain.body);
        let bomb = small(&vec![0; 1 << 20]);
        assert!(bomb.len() < 10_000);
        let called = call(&server, "ModelInfer", &head, &bomb).await;
        assert_eq!(called.status, "8", "{}", called.said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_service_says_whether_the_server_is_ready() {
    let health = "grpc.health.v1.Health/Check";
    // No text comes through the second one, however long it is waited for.
    let mut unready = options();
    unready.probe_timeout = Duration::from_millis(50);
    for (config, options, status) in [
        (EmbeddingConfig::default(), options(), 1),
        (waits_for(9), unready, 2),
    ] {
        let server = Running::with(config, options).await;
        for service in ["", "inference.GRPCInferenceService"] {
            let asked = framed(&field(1, service.as_bytes()));
            let called = call_path(server.address, health, &[], &asked).await;
            let wanted = framed(&[1 << 3, status]);
            assert_eq!((&*called.status, called.body), ("0", wanted), "{service}");
        }
    }
    // Whoever looks after the process needs no key.
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "a-key\n").unwrap();
    let mut options = options();
    options.api_keys = Some(isovec_serve::ApiKeys::read(keys).unwrap());
    let server = Running::begin(tiny(EmbeddingConfig::default()).await, options).await;
    let nobody = framed(&field(1, b"nobody"));
    for (path, body, status) in [
        (health, framed(&[]), "0"),
        (health, nobody, "5"),
        ("grpc.health.v1.Health/List", framed(&[]), "12"),
        (
            "inference.GRPCInferenceService/ServerLive",
            framed(&[]),
            "16",
        ),
    ] {
        let called = call_path(server.address, path, &[], &body).await;
        assert_eq!(called.status, status, "{path}: {}", called.said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_is_told_when_the_server_is_ready_and_when_it_stops() {
    let (server, load) = Running::without_model(options()).await;
    let watch = "grpc.health.v1.Health/Watch";
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (answer, driven) = begun_on(stream, watch, &[], &framed(&[])).await;
    let mut said = answer.into_body();
    let mut next = async || said.data().await.map(Result::unwrap);
    let told = |status| Some(framed(&[1 << 3, status]).into());
    assert_eq!(next().await, told(2));
    load.send(tiny(EmbeddingConfig::default()).await).unwrap();
    assert_eq!(next().await, told(1));
    let ended = server.begin_stop();
    assert_eq!(next().await, told(2));
    assert_eq!(next().await, None);
    let trailers = said.trailers().await.unwrap().unwrap();
    assert_eq!(trailers["grpc-status"], "14");
    ended.await.unwrap().unwrap();
    driven.abort();

    // A service that is not known may come; a deadline is kept, and a message that cannot be read is refused.
    let server = Running::start().await;
    let nobody = framed(&field(1, b"nobody"));
    let head = [("grpc-timeout", "50m")];
    let called = call_path(server.address, watch, &head, &nobody).await;
    assert_eq!((&*called.status, called.body), ("4", framed(&[1 << 3, 3])));
    let called = call_path(server.address, watch, &[], &nobody[1..]).await;
    assert_eq!((&*called.status, called.body), ("3", Vec::new()));
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_and_its_models_are_described() {
    let server = Running::start().await;
    let is = framed(&[1 << 3, 1]);
    let model = framed(&field(1, MODEL.as_bytes()));
    for (method, body) in [
        ("ServerLive", &framed(&[])),
        ("ServerReady", &framed(&[])),
        ("ModelReady", &model),
    ] {
        let called = call(&server, method, &[], body).await;
        assert_eq!((&*called.status, &called.body), ("0", &is), "{method}");
    }
    let called = call(&server, "ServerMetadata", &[], &framed(&[])).await;
    assert_eq!(only(&called.body[5..], 1), Some(&b"isovec"[..]));
    let called = call(&server, "ModelMetadata", &[], &model).await;
    let output = only(&called.body[5..], 5).unwrap();
    assert_eq!(only(output, 1), Some(&b"embedding"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_is_counted_as_a_failure() {
    let server = Running::start().await;
    let nobody = framed(&field(1, b"nobody"));
    let called = call(&server, "ModelReady", &[], &nobody).await;
    assert_eq!(&*called.status, "5");
    let count = "isovec_serve_http_answers_total{route=\"/inference.GRPCInferenceService/ModelReady\",status=\"404\"}";
    server.until(count, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_cannot_be_used_have_grpcs_status() {
    let server = Running::start().await;
    let right = infer(true, &[]);
    let nobody = framed(&field(1, b"nobody"));
    let timeout = field(4, &[field(1, b"timeout"), field(2, &[2 << 3, 1])].concat());
    let wrong = field(
        4,
        &[field(1, b"priority"), field(2, &field(3, b"high"))].concat(),
    );
    let compressed = [&[1][..], &right[1..]].concat();
    for (method, head, body, status, said) in [
        ("ModelInfer", ("x", "y"), &nobody, "5", "not served here"),
        ("ModelReady", ("x", "y"), &nobody, "5", "not served here"),
        (
            "ModelInfer",
            ("x", "y"),
            &right[..right.len() - 1].to_vec(),
            "3",
            "cut short",
        ),
        ("ModelInfer", ("x", "y"), &compressed, "3", "grpc-encoding"),
        (
            "ModelInfer",
            ("grpc-encoding", "gzip"),
            &compressed,
            "3",
            "gzip",
        ),
        (
            "ModelInfer",
            ("grpc-encoding", "snappy"),
            &compressed,
            "12",
            "identity,gzip,zstd",
        ),
        ("ModelInfer", ("x", "y"), &vec![], "3", "no message"),
        (
            "ModelInfer",
            ("x", "y"),
            &infer(true, &field(7, b"x")),
            "3",
            "either contents",
        ),
        (
            "ModelInfer",
            ("x", "y"),
            &infer(true, &field(6, &field(1, b"x"))),
            "3",
            "one output",
        ),
        (
            "ModelInfer",
            ("x", "y"),
            &infer(true, &wrong),
            "3",
            "whole number",
        ),
        (
            "ModelInfer",
            ("x", "y"),
            &infer(true, &timeout),
            "4",
            "deadline",
        ),
        (
            "ModelInfer",
            ("grpc-timeout", "1n"),
            &right,
            "4",
            "deadline",
        ),
        (
            "ModelInfer",
            ("grpc-timeout", "soon"),
            &right,
            "3",
            "no time",
        ),
        ("Nothing", ("x", "y"), &right, "12", "no such route"),
    ] {
        let called = call(&server, method, &[head], body).await;
        assert_eq!(called.status, status, "{method}: {}", called.said);
        let words = called.said.replace("%20", " ");
        assert!(words.contains(said), "{method}: {words}");
        assert!(called.body.is_empty() && called.head["content-type"] == "application/grpc");
    }
    // Without HTTP/2 there is no gRPC.
    let body = serde_json::json!({});
    let answer = server
        .post("/inference.GRPCInferenceService/ServerLive", &body)
        .await;
    assert_eq!(answer.header("grpc-status"), Some("3"));
}

#[test]
fn whatever_bytes_a_call_has_it_is_answered() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Running::start());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    };
    let rng = proptest::test_runner::RngAlgorithm::ChaCha;
    let rng = proptest::test_runner::TestRng::deterministic_rng(rng);
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, rng);
    let right = infer(true, &[]);
    let changed = prop::collection::vec((0..right.len(), any::<u8>()), 0..3);
    let cut = 0..=right.len();
    let result = runner.run(&(changed, cut, any::<bool>()), |(changed, cut, is_cut)| {
        let mut bytes = right.clone();
        for (at, byte) in changed {
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut);
        }
        let called = runtime.block_on(call(&server, "ModelInfer", &[], &bytes));
        prop_assert!(
            ["0", "3", "4", "5", "8", "12"].contains(&&*called.status),
            "{}",
            called.status
        );
        Ok(())
    });
    result.unwrap();
    let well = runtime.block_on(call(&server, "ModelInfer", &[], &right));
    assert_eq!(well.status, "0");
    let in_work = runtime.block_on(server.metric("isovec_serve_bytes_in_work"));
    assert_eq!(in_work, 0);
}
