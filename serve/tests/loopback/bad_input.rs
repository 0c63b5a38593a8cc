//! What is wrong with a request is said in its dialect, and harms nobody else.

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{self, Answer};
use crate::predict::classifier;
use crate::rerank::reranker;
use crate::running::{MODEL, Running, options};

/// The routes that take texts, with the field that they are in.
const ROUTES: [(&str, &str); 3] = [
    ("/v1/embeddings", "input"),
    ("/embed", "inputs"),
    ("/similarity", "inputs"),
];

/// An error in the form of the route's dialect, and in no other.
fn check_error(path: &str, answer: &Answer) {
    assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
    if path.starts_with("/v1") {
        answer.openai_error();
    } else if path.starts_with("/v2/models") {
        answer.oip_error();
    } else if path.starts_with("/v2") {
        answer.cohere_error();
    } else {
        answer.tei_error();
    }
}

/// The server goes on as if nothing had been.
async fn check_well(server: &Running) {
    let answer = server.openai(&["a text"]).await;
    let wanted = server.model.embed_one("a text").await.unwrap();
    assert_eq!(answer.vector(), wanted);
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
    assert_eq!(server.metric("isovec_serve_bytes_in_work").await, 0);
}

/// A request of a route with these texts, whose own form it has.
fn request(path: &str, texts: Value) -> Value {
    match path {
        "/v1/embeddings" => json!({"model": MODEL, "input": texts}),
        "/embed" => json!({"inputs": texts}),
        _ => json!({"inputs": {"source_sentence": "a", "sentences": texts}}),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_wrong_types_numbers_and_lengths() {
    let server = Running::start().await;
    let many: Vec<&str> = vec!["a"; 2049];
    for (path, _) in ROUTES {
        for (texts, openai, tei) in [
            (json!(many), 400, 413),
            (json!([]), 400, 400),
            (json!(""), 400, 422),
            (json!(["a", ""]), 400, 422),
            (json!([1_000_000]), 400, 422),
            (json!([[1, 2], ["a"]]), 400, 422),
            (json!(null), 400, 422),
            (json!({"text": "a"}), 400, 422),
            (json!([null]), 400, 422),
        ] {
            let answer = server.post(path, &request(path, texts.clone())).await;
            check_error(path, &answer);
            let wanted = if path.starts_with("/v1") { openai } else { tei };
            let shown: String = texts.to_string().chars().take(40).collect();
            assert_eq!(answer.status, wanted, "{path} {shown}");
        }
    }
    let (_, _, param, code) = server
        .post("/v1/embeddings", &request("/v1/embeddings", json!(many)))
        .await
        .openai_error();
    assert_eq!(
        (param, code),
        (json!("input"), json!("array_above_max_length"))
    );
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_request() {
    let server = Running::start().await;
    let deep = "[".repeat(100_000);
    for (path, field) in ROUTES {
        let surrogate = format!("{{\"model\":\"tiny\",\"{field}\":\"\\ud800\"}}");
        let twice = format!("{{\"model\":\"tiny\",\"{field}\":\"a\",\"{field}\":\"b\"}}");
        let list = format!("[\"a\", \"{MODEL}\"]");
        for body in [
            b"".as_slice(),
            b"{",
            b"null",
            b"{}",
            b"\"a\"",
            b"\xff\xfe{}",
            b"{\"model\":\"tiny\",\"input\":\"\xc3\x28\",\"inputs\":\"\xc3\x28\"}",
            deep.as_bytes(),
            surrogate.as_bytes(),
            twice.as_bytes(),
            list.as_bytes(),
        ] {
            let answer = server.raw(&client::post(path, "", body)).await;
            check_error(path, &answer);
            let status = if path.starts_with("/v1") { 400 } else { 422 };
            assert_eq!(
                answer.status,
                status,
                "{path} {:?}",
                &body[..body.len().min(40)]
            );
        }
    }
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_methods_and_kinds_of_content() {
    let server = Running::start().await;
    for (path, _) in ROUTES {
        let body = request(path, json!("a")).to_string();
        let length = body.len();
        for kind in [
            "",
            "content-type: text/plain\r\n",
            "content-type: application/x-www-form-urlencoded\r\n",
        ] {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{kind}content-length: {length}\r\n\r\n"
            );
            let answer = server
                .raw(&[head.as_bytes(), body.as_bytes()].concat())
                .await;
            check_error(path, &answer);
            assert_eq!(answer.status, 415, "{path} {kind}");
        }
        let answer = server.get(path).await;
        check_error(path, &answer);
        assert_eq!(answer.status, 405, "{path}");
    }
    for path in [
        "/v1/nothing",
        "/v1",
        "/nothing",
        "/embed/",
        "/%ff",
        "/..%2f",
    ] {
        let answer = server.get(path).await;
        check_error(path, &answer);
        assert_eq!(answer.status, 404, "{path}");
    }
    let charset = b"POST /embed HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: Application/JSON; charset=utf-8\r\ncontent-length: 14\r\n\r\n{\"inputs\":\"a\"}";
    assert_eq!(server.raw(charset).await.status, 200);
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_a_megabyte_is_read_and_a_body_over_the_limit_is_not() {
    let mut options = options();
    options.max_body = 2 << 20;
    let server = Running::with(isovec::EmbeddingConfig::default(), options).await;
    let long = "word ".repeat((1 << 20) / 5);
    let answer = server.openai(&[&long]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["truncated"], json!([0]));
    for (path, _) in ROUTES {
        let texts = json!([long, long, long]);
        let answer = server.post(path, &request(path, texts.clone())).await;
        check_error(path, &answer);
        assert_eq!(answer.status, 413, "{path}");
        // The same without a length that could be looked at first.
        let body = request(path, texts).to_string();
        let mut chunked = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
        for part in body.as_bytes().chunks(100_000) {
            chunked.extend(format!("{:x}\r\n", part.len()).bytes());
            chunked.extend(part);
            chunked.extend(b"\r\n");
        }
        chunked.extend(b"0\r\n\r\n");
        let answer = server.raw(&chunked).await;
        check_error(path, &answer);
        assert_eq!(answer.status, 413, "{path}");
    }
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_http_and_lies_about_lengths_harm_nobody() {
    let server = Running::start().await;
    let body = request("/embed", json!("a")).to_string();
    let post = "POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n";
    for bytes in [
        "\r\n\r\n".to_owned(),
        "\0\0\0\0\0\0\0\0".into(),
        "GET\r\n\r\n".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense that is no frame at all".into(),
        format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20)),
        format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(1 << 20)),
        format!("{post}content-length: 5\r\ncontent-length: 14\r\n\r\n{body}"),
        format!("{post}content-length: -1\r\n\r\n{body}"),
        format!("{post}content-length: 99999999999999999999\r\n\r\n{body}"),
        format!("{post}transfer-encoding: chunked\r\n\r\nzz\r\n{body}\r\n0\r\n\r\n"),
        format!("{post}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n{body}\r\n0\r\n\r\n"),
        format!("{post}transfer-encoding: chunked, identity\r\n\r\n{body}"),
        // A second request that a careless reader finds in the body of the first.
        format!(
            "{post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /info HTTP/1.1\r\nhost: test\r\n\r\n"
        ),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let _ = stream.write_all(bytes.as_bytes()).await;
        stream.shutdown().await.ok();
        if let Some(answer) = client::read(&mut stream).await {
            assert!(answer.status >= 400, "{bytes:.80}: {answer:?}");
        }
    }
    // What follows on the wish for a tunnel is not answered.
    let tunnel = b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\nGET /info HTTP/1.1\r\nhost: a\r\n\r\n";
    let answer = client::send(server.address, tunnel).await;
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert_eq!(answer.header("connection"), Some("close"));
    // More is promised than comes.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let part = format!("{post}content-length: 1000\r\n\r\n{body}");
    stream.write_all(part.as_bytes()).await.unwrap();
    drop(stream);
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_nothing_or_stops_is_not_waited_for() {
    let mut options = options();
    options.read_timeout = std::time::Duration::from_millis(50);
    let server = Running::with(isovec::EmbeddingConfig::default(), options).await;
    for start in ["", "P", "PRI * HTTP/2.0\r\n\r\nSM", "GET /health/live HT"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        // It is the server that closes.
        assert!(
            client::read(&mut stream)
                .await
                .is_none_or(|answer| answer.status >= 400),
            "{start}"
        );
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let part = "POST /embed HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{\"inputs\"";
    stream.write_all(part.as_bytes()).await.unwrap();
    let answer = client::read(&mut stream).await.unwrap();
    assert_eq!(answer.status, 408);
    answer.tei_error();
    check_well(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_by_its_head_is_read_all_the_same() {
    let server = Running::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // More than systems hold: a server that did not read it would end the connection under the client's writing.
    let body = vec![b' '; 32 << 20];
    for (request, status) in [("POST /nowhere", 404), ("POST /v1/models", 405)] {
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, *format!("HTTP/1.1 {status}").as_bytes());
        let mut rest = Vec::new();
        while !rest.ends_with(b"}") {
            assert_ne!(stream.read_buf(&mut rest).await.unwrap(), 0);
        }
    }
    // Whoever waits for a word is not asked for the body.
    let wait =
        "POST /nowhere HTTP/1.1\r\nhost: test\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(wait.as_bytes()).await.unwrap();
    assert_eq!(client::read(&mut stream).await.unwrap().status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_no_answers_is_not_waited_for() {
    let mut options = options();
    options.read_timeout = std::time::Duration::from_millis(50);
    options.max_connections = 1;
    let server = Running::with(isovec::EmbeddingConfig::default(), options).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let silent = socket.connect(server.address).await.unwrap();
    let (mut silent, writes) = silent.into_split();
    // Far more than systems hold of answers, one request after another until the server reads no more of them.
    let asking = tokio::spawn(async move {
        let mut writes = writes;
        let request = b"GET /openapi.json HTTP/1.1\r\nhost: test\r\n\r\n".repeat(1_000);
        while writes.write_all(&request).await.is_ok() {}
    });
    // There is one place, which is free when the server has ended the connection.
    assert_eq!(server.get("/health/live").await.status, 200);
    asking.await.unwrap();
    // What the system held came before.
    let mut all = Vec::new();
    let _ = silent.read_to_end(&mut all).await;
    assert!(all.starts_with(b"HTTP/1.1 200"));
    check_well(&server).await;
}

/// JSON of any form, with the names that requests have.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!(MODEL)),
        Just(json!("base64")),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let name = prop_oneof![
            Just("input"),
            Just("inputs"),
            Just("model"),
            Just("dimensions"),
            Just("encoding_format"),
            Just("truncate"),
            Just("truncation_direction"),
            Just("prompt_name"),
            Just("normalize"),
            Just("source_sentence"),
            Just("sentences"),
            Just("parameters"),
            Just("query"),
            Just("texts"),
            Just("documents"),
            Just("text"),
            Just("top_n"),
            Just("return_documents"),
            Just("return_text"),
            Just("raw_scores"),
            Just("other"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A request that is right but for a few bytes.
fn nearly_right(whole: &Value) -> impl Strategy<Value = Vec<u8>> {
    let whole = whole.to_string().into_bytes();
    prop::collection::vec((0..whole.len(), any::<u8>()), 0..4).prop_map(move |changes| {
        let mut bytes = whole.clone();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes
    })
}

/// Sends requests of any form to routes, and looks at each answer.
fn send_anything<H>(
    server: &Running<H>,
    runtime: &tokio::runtime::Runtime,
    paths: &[&str],
    right: impl Strategy<Value = Vec<u8>>,
) {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let body = prop_oneof![
        any_json().prop_map(|json| json.to_string().into_bytes()),
        right
    ];
    let result = runner.run(&(body, 0..paths.len()), |(body, route)| {
        let path = paths[route];
        let answer = runtime.block_on(server.raw(&client::post(path, "", &body)));
        if answer.status == 200 {
            let json = answer.json();
            let rows = ["data", "results", "outputs"];
            let rows = rows.iter().find_map(|name| json.get(name));
            let rows = rows.unwrap_or(&json);
            prop_assert!(!rows.as_array().unwrap().is_empty());
            // JSON has no word for what is no number: serde_json would write null.
            prop_assert!(!answer.text().contains("null"), "{}", answer.text());
        } else {
            check_error(path, &answer);
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn whatever_is_sent_gets_vectors_or_an_error_in_the_routes_dialect() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Running::start());
    let paths = ROUTES.map(|(path, _)| path);
    let right = json!({"model": MODEL, "input": ["a", "b"], "inputs": ["a", "b"], "dimensions": 8, "truncate": true});
    send_anything(&server, &runtime, &paths, nearly_right(&right));
    let paths = ["/v1/embeddings", "/tokenize", "/decode"];
    let right = json!({"model": MODEL, "input": [[7, 8], [9]], "inputs": ["a"], "ids": [7, 8], "add_special_tokens": true});
    send_anything(&server, &runtime, &paths, nearly_right(&right));
    runtime.block_on(check_well(&server));
}

#[test]
fn whatever_is_sent_gets_tensors_or_an_error_in_the_protocols_form() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Running::start());
    let paths = ["/v2/models/tiny/infer"];
    let right = json!({"id": "a", "inputs": [{"name": "text", "datatype": "BYTES", "shape": [2, 1], "data": [["a"], ["b"]]}],
        "outputs": [{"name": "embedding"}], "parameters": {"priority": 1, "timeout": 60_000_000}});
    send_anything(&server, &runtime, &paths, nearly_right(&right));
    runtime.block_on(check_well(&server));
}

#[test]
fn whatever_is_sent_gets_ranks_or_an_error_in_the_routes_dialect() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(async { Running::over(reranker().await, options()).await });
    let paths = ["/rerank", "/v1/rerank", "/v2/rerank"];
    for field in ["texts", "documents"] {
        let right = json!({"model": MODEL, "query": "a", field: ["a", "b"], "top_n": 1, "raw_scores": true});
        send_anything(&server, &runtime, &paths, nearly_right(&right));
    }
    let right = json!({"query": "a", "documents": ["b"]});
    assert_eq!(
        runtime.block_on(server.post("/v1/rerank", &right)).status,
        200
    );
}

#[test]
fn whatever_is_sent_gets_labels_or_an_error_in_the_routes_dialect() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(async { Running::over(classifier().await, options()).await });
    let right = json!({"model": MODEL, "inputs": [["a"], ["b", "c"]], "raw_scores": true, "truncate": true});
    send_anything(&server, &runtime, &["/predict"], nearly_right(&right));
    let right = json!({"inputs": "a"});
    assert_eq!(
        runtime.block_on(server.post("/predict", &right)).status,
        200
    );
}
