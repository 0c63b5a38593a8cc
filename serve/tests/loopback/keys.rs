//! API keys.

use isovec_serve::ApiKeys;
use serde_json::json;

use crate::client;
use crate::running::{MODEL, options, tiny};

const KEY: &str = "sk-secret-of-a-client";

fn keys() -> ApiKeys {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    std::fs::write(&path, format!("another\n{KEY}\n")).unwrap();
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
        ("/health", 200),
        ("/health/live", 200),
        ("/health/ready", 200),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        let answer = client::send(address, head.as_bytes()).await;
        assert_eq!(answer.status, status, "{path}");
    }
}
