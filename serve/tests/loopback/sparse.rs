//! Texts get weights of words.

use isovec::{EmbeddingConfig, ModelSource, Prompt, SparseEmbedder, SparseOptions};
use isovec_test_models::sparse;
use isovec_test_support::{Which, data};
use serde_json::{Value, json};

use crate::running::{MODEL, Running, options};

pub(crate) async fn loaded() -> SparseEmbedder {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = SparseEmbedder::builder(data("tiny-splade")).config(config);
    builder.load().await.unwrap()
}

async fn check(server: &Running<SparseEmbedder>, asked: &Value, texts: &[&str], prompt: Prompt) {
    let answer = server.post("/embed_sparse", asked).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let options = SparseOptions::default().with_prompt(prompt);
    let wanted = server.model.embed_with(texts, options).await.unwrap();
    let rows = answer.json();
    assert_eq!(rows.as_array().unwrap().len(), wanted.len());
    for (row, wanted) in rows.as_array().unwrap().iter().zip(wanted.iter()) {
        let row: Vec<(u32, f32)> = row
            .as_array()
            .unwrap()
            .iter()
            .map(|weight| {
                let value = serde_json::from_value(weight["value"].clone()).unwrap();
                (weight["index"].as_u64().unwrap() as u32, value)
            })
            .collect();
        assert_eq!(row, wanted.iter().collect::<Vec<_>>());
    }
    let tokens: u32 = wanted.token_counts().iter().sum();
    assert_eq!(
        answer.header("x-compute-tokens"),
        Some(&*tokens.to_string())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn weights_are_the_librarys() {
    let server = Running::over(loaded().await, options()).await;
    let one = json!({"inputs": "the cat sat"});
    check(&server, &one, &["the cat sat"], Prompt::Default).await;
    let texts = ["the cat sat", "money in the bank", "rain"];
    let several = json!({"inputs": texts, "prompt_name": "query"});
    check(&server, &several, &texts, Prompt::Query).await;
    let info = server.get("/info").await.json();
    assert_eq!(
        (&info["model_id"], &info["task"]),
        (&json!(MODEL), &json!("sparse"))
    );
    assert_eq!(info["model_type"]["embedding"]["pooling"], "splade");
    assert_eq!(server.get("/health/ready").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_looked_up_where_the_model_has_a_table() {
    let files = sparse::routed(&sparse::tiny(), "").into_iter();
    let files = files.map(|(name, content)| (name, content.into()));
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let model = SparseEmbedder::builder(ModelSource::bytes("two ways", files)).config(config);
    let server = Running::over(model.load().await.unwrap(), options()).await;
    let texts = ["the cat sat", "money in the bank"];
    let asked = json!({"inputs": texts, "prompt_name": "query"});
    check(&server, &asked, &texts, Prompt::Query).await;
    assert_eq!(server.model.stats().engine.provider.runs, 0);
    check(&server, &json!({"inputs": texts}), &texts, Prompt::Passage).await;
    assert!(server.model.stats().engine.provider.runs > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused() {
    let server = Running::over(loaded().await, options()).await;
    for (asked, status) in [
        (json!({"inputs": []}), 400),
        (json!({"inputs": ""}), 422),
        (json!({"inputs": null}), 422),
        (json!({}), 422),
        (json!({"inputs": "a", "prompt_name": "no such"}), 422),
        (json!({"inputs": "a", "model": "another"}), 404),
        (
            json!({"inputs": "rain ".repeat(300), "truncate": false}),
            422,
        ),
    ] {
        let answer = server.post("/embed_sparse", &asked).await;
        answer.tei_error();
        let shown: String = asked.to_string().chars().take(40).collect();
        assert_eq!(answer.status, status, "{shown}");
    }
}
