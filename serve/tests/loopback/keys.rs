//! API keys.

use std::time::Duration;

use isovec_serve::ApiKeys;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::client;
use crate::running::{MODEL, options, tiny, waits_for};

const KEY: &str = "sk-secret-of-a-client";
const OTHER: &str = "another";

fn keys() -> ApiKeys {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, format!("{OTHER}\n{KEY}\n")).unwrap();
    ApiKeys::read(path).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_without_a_key_but_those_who_look_after_the_process() {
    let mut options = options();
    options.api_keys = Some(keys());
    let address = {
        let server = isovec_serve::Server::bind(([127, 0, 0, 1], 0).into(), options);
        let server = server.await.unwrap();
        let address = server.address().unwrap();
        let model = tiny(isovec::EmbeddingConfig::default()).await;
        tokio::spawn(server.run(async { Ok(model) }, std::future::pending()));
        address
    };
    let body = json!({"model": MODEL, "input": "a text", "inputs": "a text"}).to_string();
    let right = format!("authorization: Bearer {KEY}\r\n");
    let wrong = "authorization: Bearer sk-secret-of-a-clien\r\n";
    for path in ["/v1/embeddings", "/embed", "/"] {
        for head in ["", wrong, "x-api-key: another\r\n"] {
            let answer = client::send(address, &client::post(path, head, body.as_bytes())).await;
            assert_eq!(answer.status, 401, "{path}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            if path.starts_with("/v1") {
                assert_eq!(answer.openai_error().3, "invalid_api_key");
            } else {
                answer.tei_error();
            }
        }
        let answer = client::send(address, &client::post(path, &right, body.as_bytes())).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    for (path, status) in [
        ("/v1/models", 401),
        ("/info", 401),
        ("/metrics", 401),
        ("/nothing", 401),
        ("/v2", 401),
        ("/healthy", 401),
        ("/v2/healthy", 401),
        ("/statuses", 401),
        // A browser has no key to send; what the page shows needs one.
        ("/status", 200),
        ("/status.js", 200),
        ("/v2/health/live", 200),
        ("/v2/health/ready", 200),
        ("/health", 200),
        ("/health/live", 200),
        ("/health/ready", 200),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        let answer = client::send(address, head.as_bytes()).await;
        assert_eq!(answer.status, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_has_more_than_its_share() {
    let mut options = options();
    options.api_keys = Some(keys());
    options.max_requests = 4;
    let server = isovec_serve::Server::bind(([127, 0, 0, 1], 0).into(), options);
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    let model = tiny(waits_for(4)).await;
    tokio::spawn(server.run(async { Ok(model) }, std::future::pending()));
    let asks = |key: &str, head: &str| {
        let body = json!({"model": MODEL, "input": "a text"}).to_string();
        let head = format!("authorization: Bearer {key}\r\n{head}");
        client::post("/v1/embeddings", &head, body.as_bytes())
    };
    let get = async |path: &str| {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\nauthorization: Bearer {KEY}\r\n\r\n"
        );
        client::send(address, head.as_bytes()).await
    };
    while get("/info").await.status == 503 {
        tokio::task::yield_now().await;
    }
    let mut inside = Vec::new();
    for (key, within) in [(KEY, 1), (KEY, 2), (OTHER, 3)] {
        let line = format!("isovec_serve_requests_in_work {within}");
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&asks(key, "")).await.unwrap();
        while !get("/metrics").await.text().contains(&line) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        inside.push(stream);
    }
    let refused = client::send(address, &asks(KEY, "")).await;
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    let (said, ..) = refused.openai_error();
    assert!(
        said.contains("this API key") && said.contains("2 of 2 requests"),
        "{said}"
    );
    // The other key has room, but not for what can wait.
    let refused = client::send(address, &asks(OTHER, "x-request-priority: low\r\n")).await;
    assert_eq!(refused.status, 429);
    assert!(refused.openai_error().0.contains("low priority"));
    let wrong = client::send(address, &asks(OTHER, "x-request-priority: 7\r\n")).await;
    assert_eq!(wrong.status, 400);
    // The fourth completes the batch.
    let last = client::send(address, &asks(OTHER, "")).await;
    assert_eq!(last.status, 200);
    for mut stream in inside {
        assert_eq!(client::read(&mut stream).await.unwrap().status, 200);
    }
    let low = asks(
        KEY,
        "x-request-timeout: 0.05\r\nx-request-priority: low\r\n",
    );
    assert_eq!(
        client::send(address, &low).await.status,
        504,
        "it was let in"
    );
}
