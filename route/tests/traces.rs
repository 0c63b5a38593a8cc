//! Traces of requests through a router and a server, as a collector gets them. Alone in this program: a subscriber is for all of it.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use isovec::{Embedder, EmbeddingConfig};
use isovec_route::{RouteOptions, Router, Traces};
use isovec_serve::{ApiKeys, ServeOptions, Server};
use isovec_test_support::{Which, tiny_model};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The bodies that a collector was sent.
type Taken = Arc<Mutex<Vec<Vec<u8>>>>;

/// A collector that takes everything.
async fn collector() -> (SocketAddr, Taken) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken = Taken::default();
    let all = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(take(stream, Arc::clone(&all)));
        }
    });
    (address, taken)
}

async fn take(mut stream: TcpStream, all: Taken) {
    let mut bytes = Vec::new();
    loop {
        let read = stream.read_buf(&mut bytes).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(bytes[..end].to_vec())
            .unwrap()
            .to_lowercase();
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .find(|(header, _)| *header == name)
                .unwrap()
                .1
                .to_owned()
        };
        let length: usize = header("content-length").parse().unwrap();
        if bytes.len() < end + 4 + length {
            continue;
        }
        assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
        assert_eq!(header("content-type"), "application/x-protobuf");
        let body = bytes[end + 4..end + 4 + length].to_vec();
        bytes.drain(..end + 4 + length);
        all.lock().unwrap().push(body);
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

async fn ask(address: SocketAddr, head: &str) -> String {
    let body = r#"{"input": "a private text"}"#;
    let request = format!(
        "POST /v1/embeddings HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         authorization: Bearer private-key\r\ncontent-length: {}\r\n{head}\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The text or number of an attribute.
fn attribute(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|one| one.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{name}: {other:?}"),
    }
}

fn is_error(span: &Span) -> bool {
    let status = span.status.as_ref();
    status.is_some_and(|status| status.code() == StatusCode::Error)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_one_trace_through_router_and_server_without_its_text_and_its_key() {
    let (to, taken) = collector().await;
    let traces = Traces::to(&format!("http://{to}"), "isovec-route").unwrap();
    tracing_subscriber::registry().with(traces.layer()).init();

    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "private-key\n").unwrap();
    let mut options = ServeOptions::default();
    options.name = Some("tiny".into());
    options.api_keys = Some(ApiKeys::read(keys).unwrap());
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Server::bind(any, options).await.unwrap();
    let replica = format!("http://{}", server.address().unwrap());
    // Texts wait for each other, so that there is a queue to be seen.
    let config = EmbeddingConfig::default()
        .with_dynamic_batching(false)
        .with_preferred_batch_size(2)
        .with_max_wait(Duration::from_millis(200));
    let builder = Embedder::builder(tiny_model()).config(Which::Portable.configure(config));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(builder.load(), async {
        let _ = stopped.await;
    }));
    let mut options = RouteOptions::default();
    options.probe_interval = Duration::from_millis(10);
    let router = Router::bind(any, vec![replica.parse().unwrap()], options);
    let router = router.await.unwrap();
    let address = router.address().unwrap();
    tokio::spawn(router.run(std::future::pending()));
    while !ask(address, "").await.starts_with("HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    let parent = |trace: u8, flag: &str| {
        format!("traceparent: 00-{:032x}-00000000000000ff-{flag}\r\n", trace)
    };
    let heads = [
        parent(1, "01"),
        parent(2, "01"),
        parent(3, "00"),
        "traceparent: nonsense\r\n".into(),
    ];
    // Two at a time make a batch.
    for pair in heads.chunks(2) {
        for answer in join_all(pair.iter().map(|head| ask(address, head))).await {
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    // What the router refuses is in a trace all the same.
    let lost = ask(
        address,
        &parent(4, "01").replace("\r\n", "\r\nx-request-timeout: nonsense\r\n"),
    )
    .await;
    assert!(lost.starts_with("HTTP/1.1 400"), "{lost}");
    // A router that believes in a replica that has gone.
    let mut options = RouteOptions::default();
    options.probe_interval = Duration::from_secs(3600);
    let believes = Router::bind(any, vec![replica.parse().unwrap()], options);
    let believes = believes.await.unwrap();
    let there = believes.address().unwrap();
    tokio::spawn(believes.run(std::future::pending()));
    assert!(ask(there, "").await.starts_with("HTTP/1.1 200"));
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
    let short = parent(5, "01") + "x-request-timeout: 0.2\r\n";
    let gone = ask(there, &short).await;
    assert!(!gone.starts_with("HTTP/1.1 200"), "{gone}");
    tokio::task::spawn_blocking(|| traces.end()).await.unwrap();

    let bodies = taken.lock().unwrap();
    let mut spans = Vec::new();
    for body in bodies.iter() {
        assert!(
            !body.windows(7).any(|window| window == b"private"),
            "a text or a key"
        );
        let sent = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        for of_resource in sent.resource_spans {
            let resource = of_resource.resource.unwrap();
            let name = resource
                .attributes
                .iter()
                .find(|one| one.key == "service.name");
            let name = name.unwrap().value.as_ref().unwrap().value.clone().unwrap();
            assert_eq!(name, Value::StringValue("isovec-route".into()));
            spans.extend(
                of_resource
                    .scope_spans
                    .into_iter()
                    .flat_map(|scope| scope.spans),
            );
        }
    }
    let of = |trace: u8| {
        let id = u128::from(trace).to_be_bytes();
        let mine = spans.iter().filter(|span| span.trace_id == id);
        mine.map(|span| (span.name.clone(), span))
            .collect::<BTreeMap<_, _>>()
    };
    let mut ran = 0;
    for trace in [1, 2] {
        let mine = of(trace);
        let below = |name: &str, parent: &str| {
            let [name, parent] = [name, parent].map(|name| {
                *mine
                    .get(name)
                    .unwrap_or_else(|| panic!("{name}: {:?}", mine.keys()))
            });
            assert_eq!(name.parent_span_id, parent.span_id);
            assert!(parent.start_time_unix_nano <= name.start_time_unix_nano);
            assert!(name.start_time_unix_nano <= name.end_time_unix_nano);
        };
        let routed = mine["POST OpenAI, Jina"];
        assert_eq!(routed.parent_span_id, 0xff_u64.to_be_bytes());
        assert_eq!(attribute(routed, "isovec.tries").as_deref(), Some("1"));
        below("POST", "POST OpenAI, Jina");
        below("POST /v1/embeddings", "POST");
        below("admission", "POST /v1/embeddings");
        below("request", "POST /v1/embeddings");
        below("queue", "request");
        ran += usize::from(mine.contains_key("run"));
        let served = mine["POST /v1/embeddings"];
        for (name, value) in [
            ("http.route", "/v1/embeddings"),
            ("http.request.method", "POST"),
            ("http.response.status_code", "200"),
            ("isovec.model", "tiny"),
            ("isovec.texts", "1"),
        ] {
            assert_eq!(attribute(served, name).as_deref(), Some(value), "{name}");
        }
        assert!(attribute(served, "isovec.tokens").is_some());
        assert!(!is_error(mine["POST"]));
        assert_eq!(
            attribute(routed, "request.id"),
            attribute(served, "request.id")
        );
    }
    // A batch of both is in the trace of one of them.
    assert!(ran > 0);
    assert!(of(3).is_empty(), "its client wants no trace");
    assert!(is_error(of(5)["POST"]), "a try that reached nobody");
    assert_eq!(
        attribute(of(4)["POST OpenAI, Jina"], "http.response.status_code").as_deref(),
        Some("400")
    );
    let roots = spans.iter().filter(|span| span.parent_span_id.is_empty());
    assert!(
        roots.clone().all(|span| span.name == "POST OpenAI, Jina"),
        "probes are in no trace"
    );
    assert!(roots.count() > 1);
}

#[test]
fn what_is_no_address_of_a_collector_is_refused() {
    for endpoint in ["", "127.0.0.1:4318", "ftp://127.0.0.1", "http://"] {
        let error = Traces::to(endpoint, "isovec-route")
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("{endpoint:?}")), "{error}");
    }
}
