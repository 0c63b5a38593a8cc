//! Texts get a vector for each token, in two protocols.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

#[tokio::test(flavor = "multi_thread")]
async fn vectors_in_jinas_form_are_the_same() {
    let server = Running::over(multi_vector().await, options()).await;
    let texts = ["the cat sat", &"rain ".repeat(300)];
    for (kind, prompt) in [
        (json!(null), Prompt::Passage),
        (json!("document"), Prompt::Passage),
        (json!("query"), Prompt::Query),
    ] {
        let options = MultiVectorOptions::default().with_prompt(prompt);
        let wanted = server.model.embed_with(texts, options).await.unwrap();
        let own = wanted.dim();
        let asked = json!({"model": MODEL, "input": texts, "input_type": kind, "dimensions": own, "embedding_type": "float"});
        let answer = server.post("/v1/multi-vector", &asked).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let plain = answer.json();
        assert_eq!(
            (&plain["object"], &plain["model"]),
            (&json!("list"), &json!(MODEL))
        );
        assert_eq!(plain["truncated"], json!([1]));
        assert_eq!(plain["fingerprint"], wanted.fingerprint().id());
        let tokens: u32 = wanted.token_counts().iter().sum();
        assert_eq!(plain["usage"]["total_tokens"], tokens);
        let mut asked = asked.clone();
        asked["embedding_type"] = json!("base64");
        let coded = server.post("/v1/multi-vector", &asked).await.json();
        for at in 0..texts.len() {
            let row = &plain["data"][at];
            assert_eq!(
                (&row["object"], &row["index"]),
                (&json!("embeddings"), &json!(at))
            );
            let rows: Vec<Vec<f32>> = serde_json::from_value(row["embeddings"].clone()).unwrap();
            assert!(rows.iter().all(|vector| vector.len() == own));
            assert_eq!(rows.concat(), *wanted.get(at).unwrap());
            let rows: Vec<String> =
                serde_json::from_value(coded["data"][at]["embeddings"].clone()).unwrap();
            let bytes = rows.iter().flat_map(|row| STANDARD.decode(row).unwrap());
            let bytes: Vec<u8> = bytes.collect();
            let values = bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|four| f32::from_le_bytes(*four));
            assert_eq!(values.collect::<Vec<f32>>(), *wanted.get(at).unwrap());
        }
    }
    for (asked, status, field) in [
        (json!({"input": []}), 400, json!("input")),
        (
            json!({"input": "a", "dimensions": 7}),
            400,
            json!("dimensions"),
        ),
        (
            json!({"input": "a", "input_type": "no such"}),
            400,
            json!(null),
        ),
        (
            json!({"input": "a", "embedding_type": "ubinary"}),
            400,
            json!(null),
        ),
        (
            json!({"input": "a", "model": "another"}),
            404,
            json!("model"),
        ),
    ] {
        let answer = server.post("/v1/multi-vector", &asked).await;
        assert_eq!(
            (answer.status, answer.openai_error().2),
            (status, field),
            "{asked}"
        );
    }
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
}
