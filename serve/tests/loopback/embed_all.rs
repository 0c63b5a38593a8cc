//! Texts get a vector for each token.

use isovec::{EmbeddingConfig, MultiVectorEmbedder, MultiVectorOptions, Prompt};
use isovec_test_support::{Which, data};
use serde_json::{Value, json};

use crate::running::{MODEL, Running, options};

pub(crate) async fn multi_vector() -> MultiVectorEmbedder {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = MultiVectorEmbedder::builder(data("tiny-colbert")).config(config);
    builder.load().await.unwrap()
}

async fn check(
    server: &Running<MultiVectorEmbedder>,
    asked: &Value,
    texts: &[&str],
    prompt: Prompt,
) {
    let answer = server.post("/embed_all", asked).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let options = MultiVectorOptions::default().with_prompt(prompt);
    let wanted = server.model.embed_with(texts, options).await.unwrap();
    let rows: Vec<Vec<Vec<f32>>> = serde_json::from_value(answer.json()).unwrap();
    assert_eq!(rows.len(), wanted.len());
    for (at, row) in rows.iter().enumerate() {
        assert!(row.iter().all(|vector| vector.len() == wanted.dim()));
        assert_eq!(row.concat(), *wanted.get(at).unwrap());
    }
    let tokens: u32 = wanted.token_counts().iter().sum();
    assert_eq!(
        answer.header("x-compute-tokens"),
        Some(&*tokens.to_string())
    );
    let fingerprint = wanted.fingerprint().id();
    assert_eq!(answer.header("x-isovec-fingerprint"), Some(&*fingerprint));
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_the_librarys() {
    let server = Running::over(multi_vector().await, options()).await;
    let one = json!({"inputs": "the cat sat."});
    check(&server, &one, &["the cat sat."], Prompt::Passage).await;
    let texts = ["the cat sat", "money, in the bank!", "rain"];
    for (name, prompt) in [
        ("document", Prompt::Passage),
        ("passage", Prompt::Passage),
        ("query", Prompt::Query),
    ] {
        let several = json!({"inputs": texts, "prompt_name": name, "model": MODEL});
        check(&server, &several, &texts, prompt).await;
    }
    let info = server.get("/info").await.json();
    assert_eq!(
        (&info["task"], &info["dimension"]),
        (&json!("multi_vector"), &json!(server.model.dimension()))
    );
    assert_eq!(server.get("/health/ready").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused() {
    let server = Running::over(multi_vector().await, options()).await;
    for (asked, status) in [
        (json!({"inputs": []}), 400),
        (json!({"inputs": ""}), 422),
        (json!({"inputs": [["a"]]}), 422),
        (json!({"inputs": null}), 422),
        (json!({}), 422),
        (json!({"inputs": "a", "prompt_name": "no such"}), 422),
        (json!({"inputs": "a", "prompt_name": 1}), 422),
        (json!({"inputs": "a", "model": "another"}), 404),
        (
            json!({"inputs": "rain ".repeat(300), "truncate": false}),
            422,
        ),
    ] {
        let answer = server.post("/embed_all", &asked).await;
        answer.tei_error();
        let shown: String = asked.to_string().chars().take(40).collect();
        assert_eq!(answer.status, status, "{shown}");
    }
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
}
