//! Texts and pairs of texts get labels.

use isovec::{Classifier, ClassifyOptions, EmbeddingConfig, Label, Scores};
use isovec_test_support::{Which, data};
use serde_json::{Value, json};

use crate::running::{MODEL, Running, options};

pub(crate) async fn classifier() -> Classifier {
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = Classifier::builder(data("tiny-classifier")).config(config);
    builder.load().await.unwrap()
}

async fn start() -> Running<Classifier> {
    Running::over(classifier().await, options()).await
}

/// The labels of an item of one or two texts.
async fn wanted(server: &Running<Classifier>, item: &[&str], raw: bool) -> Vec<Label> {
    let mut options = ClassifyOptions::default();
    if raw {
        options = options.with_scores(Scores::Logits);
    }
    let said = match *item {
        [text] => server.model.classify_with([text], options).await,
        [first, second] => {
            server
                .model
                .classify_pairs_with([(first, second)], options)
                .await
        }
        _ => panic!("an item has one or two texts"),
    };
    said.unwrap().ranked(0).unwrap()
}

fn check_row(row: &Value, wanted: &[Label]) {
    let row = row.as_array().unwrap();
    assert_eq!(row.len(), wanted.len());
    for (label, wanted) in row.iter().zip(wanted) {
        assert_eq!(label["label"], wanted.label);
        let score: f32 = serde_json::from_value(label["score"].clone()).unwrap();
        assert_eq!(score, wanted.score);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_are_the_librarys_for_texts_pairs_and_batches_of_both() {
    let server = start().await;
    for raw in [false, true] {
        for (inputs, item) in [
            (json!("the cat sat"), vec!["the cat sat"]),
            (json!(["the cat sat"]), vec!["the cat sat"]),
            (
                json!(["the cat sat", "stocks fell"]),
                vec!["the cat sat", "stocks fell"],
            ),
        ] {
            let asked = json!({"inputs": inputs, "raw_scores": raw});
            let answer = server.post("/predict", &asked).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            check_row(&answer.json(), &wanted(&server, &item, raw).await);
        }
        let batch: [&[&str]; 5] = [
            &["rain came", "over the hills"],
            &["the cat sat"],
            &["stocks fell"],
            &["stocks fell", "the cat sat"],
            &["rain came"],
        ];
        let asked = json!({"inputs": batch, "raw_scores": raw});
        let answer = server.post("/predict", &asked).await;
        let rows = answer.json();
        assert_eq!(rows.as_array().unwrap().len(), batch.len());
        for (row, item) in rows.as_array().unwrap().iter().zip(batch) {
            check_row(row, &wanted(&server, item, raw).await);
        }
        let one = json!({"inputs": [["rain came"]], "raw_scores": raw});
        let rows = server.post("/predict", &one).await.json();
        check_row(&rows[0], &wanted(&server, &["rain came"], raw).await);
    }
    assert_eq!(
        server
            .metric("isovec_serve_texts_total{model=\"tiny\"}")
            .await,
        2 * 9
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_counts_both_kinds_of_items_in_their_order() {
    let server = start().await;
    let long = "rain ".repeat(300);
    let inputs = json!([["the cat", &long], ["the cat"], [&long]]);
    let answer = server.post("/predict", &json!({"inputs": inputs})).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("x-isovec-truncated-texts"), Some("0,2"));
    let characters = 2 * "the cat".len() + 2 * long.len();
    assert_eq!(
        answer.header("x-compute-characters"),
        Some(&*characters.to_string())
    );
    let pair = server
        .model
        .classify_pairs([("the cat", &long)])
        .await
        .unwrap();
    let texts = server.model.classify(["the cat", &long]).await.unwrap();
    let tokens: u32 = pair.token_counts().iter().chain(texts.token_counts()).sum();
    assert_eq!(
        answer.header("x-compute-tokens"),
        Some(&*tokens.to_string())
    );
    let whole = json!({"inputs": inputs, "truncate": false});
    let refused = server.post("/predict", &whole).await;
    assert_eq!(refused.status, 422);
    assert!(refused.tei_error().0.contains("text 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_cannot_be_read_are_refused() {
    let server = start().await;
    let many = vec![["a"]; 2049];
    for (asked, status) in [
        (json!({"inputs": []}), 400),
        (json!({"inputs": ""}), 422),
        (json!({"inputs": ["a", "b", "c"]}), 422),
        (json!({"inputs": [["a"], "b"]}), 422),
        (json!({"inputs": [[]]}), 422),
        (json!({"inputs": [["a", "b", "c"]]}), 422),
        (json!({"inputs": [["a", ""]]}), 422),
        (json!({"inputs": [[1]]}), 422),
        (json!({"inputs": {"text": "a"}}), 422),
        (json!({"inputs": null}), 422),
        (json!({}), 422),
        (json!({"inputs": "a", "raw_scores": 1}), 422),
        (json!({"inputs": "a", "model": "another"}), 404),
        (json!({"inputs": many}), 413),
    ] {
        let answer = server.post("/predict", &asked).await;
        answer.tei_error();
        let shown: String = asked.to_string().chars().take(40).collect();
        assert_eq!(answer.status, status, "{shown}");
    }
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn classifiers_are_described_and_ready() {
    let server = start().await;
    let info = server.get("/info").await.json();
    assert_eq!(info["model_id"], MODEL);
    let labels = &info["model_type"]["classifier"];
    assert_eq!(labels["id2label"]["2"], "positive");
    assert_eq!(labels["label2id"]["positive"], 2);
    assert_eq!(server.get("/health/ready").await.status, 200);
}
