//! Documents are ranked, as three protocols ask for it.

use isovec::{EmbeddingConfig, ModelSource, RankOptions, Ranked, Reranker, Scores};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::{heads, tiny};
use isovec_test_support::{Which, data};
use serde_json::{Value, json};

use crate::client::{self, Answer};
use crate::running::{MODEL, Running, options};

const QUERY: &str = "which animal is in the house";

const DOCUMENTS: [&str; 5] = [
    "the dog is an animal",
    "money in the bank",
    "A cat sleeps in the house, and the children watch it for a long time.",
    "the bank of the river",
    "money in the bank",
];

/// A seeded BERT with one label, as transformers publishes it.
pub(crate) fn files() -> [(&'static str, Vec<u8>); 3] {
    let model = heads::published(heads::all(1).swap_remove(0).1);
    let model = model.with("id2label", json!({"0": "LABEL_0"}));
    let tokenizer = tiny::tokenizer(&tiny::vocabulary());
    [
        ("config.json", serde_json::to_vec(&model.config).unwrap()),
        ("model.safetensors", model.file(Stored::F32)),
        ("tokenizer.json", serde_json::to_vec(&tokenizer).unwrap()),
    ]
}

pub(crate) async fn reranker() -> Reranker {
    let files = files().map(|(name, bytes)| (name.to_owned(), bytes.into()));
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = Reranker::builder(ModelSource::bytes("a reranker", files)).config(config);
    builder.load().await.unwrap()
}

async fn start() -> Running<Reranker> {
    Running::over(reranker().await, options()).await
}

async fn wanted(server: &Running<Reranker>, scores: Scores) -> Vec<Ranked> {
    let options = RankOptions::default().with_scores(scores);
    let ranked = server.model.rank_with(QUERY, DOCUMENTS, options);
    ranked.await.unwrap()
}

/// An error in the form of the route's dialect.
fn check_error(path: &str, answer: &Answer) -> String {
    match path {
        "/v1/rerank" => answer.openai_error().0,
        "/v2/rerank" => answer.cohere_error(),
        _ => answer.tei_error().0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_embeddings_inference_gets_ranks_that_are_the_librarys() {
    let server = start().await;
    for (raw, scores) in [
        (None, Scores::Sigmoid),
        (Some(false), Scores::Sigmoid),
        (Some(true), Scores::Logits),
    ] {
        let wanted = wanted(&server, scores).await;
        for with_text in [false, true] {
            let mut asked = json!({"query": QUERY, "texts": DOCUMENTS, "return_text": with_text});
            if let Some(raw) = raw {
                asked["raw_scores"] = raw.into();
            }
            let answer = server.post("/rerank", &asked).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let rows = answer.json();
            let rows = rows.as_array().unwrap();
            assert_eq!(rows.len(), DOCUMENTS.len());
            for (row, wanted) in rows.iter().zip(&wanted) {
                assert_eq!(row["index"], wanted.index);
                let score: f32 = serde_json::from_value(row["score"].clone()).unwrap();
                assert_eq!(score, wanted.score);
                let text = row.get("text").and_then(Value::as_str);
                assert_eq!(text, with_text.then_some(DOCUMENTS[wanted.index]));
            }
            let tokens: u32 = wanted.iter().map(|document| document.tokens).sum();
            let characters = DOCUMENTS.concat().len() + 5 * QUERY.len();
            for (name, value) in [
                ("x-compute-tokens", tokens.to_string()),
                ("x-compute-characters", characters.to_string()),
                ("x-isovec-fingerprint", server.model.fingerprint().id()),
            ] {
                assert_eq!(answer.header(name), Some(&*value), "{name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jina_and_cohere_get_results_that_are_the_librarys() {
    let server = start().await;
    let wanted = wanted(&server, Scores::Sigmoid).await;
    let tokens: u32 = wanted.iter().map(|document| document.tokens).sum();
    let objects: Vec<Value> = DOCUMENTS.iter().map(|text| json!({"text": text})).collect();
    for path in ["/rerank", "/v1/rerank", "/v2/rerank"] {
        for (documents, top_n, with_text) in [
            (json!(DOCUMENTS), None, false),
            (json!(objects), Some(2), true),
            (json!(DOCUMENTS), Some(usize::MAX), true),
        ] {
            let mut asked = json!({"model": MODEL, "query": QUERY, "documents": documents});
            if let Some(top_n) = top_n {
                asked["top_n"] = top_n.into();
                asked["return_documents"] = with_text.into();
            }
            let answer = server.post(path, &asked).await;
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            let body = answer.json();
            let results = body["results"].as_array().unwrap();
            assert_eq!(results.len(), top_n.unwrap_or(usize::MAX).min(5), "{path}");
            for (result, wanted) in results.iter().zip(&wanted) {
                assert_eq!(result["index"], wanted.index);
                let score: f32 = serde_json::from_value(result["relevance_score"].clone()).unwrap();
                assert_eq!(score, wanted.score);
                assert!((0.0..=1.0).contains(&score));
                let text = result.get("document").map(|document| &document["text"]);
                let wanted = json!(DOCUMENTS[wanted.index]);
                assert_eq!(text, with_text.then_some(&wanted), "{path}");
            }
            assert_eq!(body["model"], MODEL);
            assert_eq!(body["usage"]["total_tokens"], tokens);
            assert_eq!(body["meta"]["tokens"]["input_tokens"], tokens);
            assert_eq!(body["fingerprint"], server.model.fingerprint().id());
            assert_eq!(body["truncated"], json!([]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_is_said_by_the_documents_place() {
    let server = start().await;
    let long = "the bank of the river ".repeat(500);
    let documents = ["money", &long, "the dog", &long];
    let asked = json!({"query": QUERY, "documents": documents, "top_n": 1});
    let answer = server.post("/v1/rerank", &asked).await;
    assert_eq!(answer.json()["truncated"], json!([1, 3]));
    assert_eq!(answer.header("x-isovec-truncated-texts"), Some("1,3"));
    let asked = json!({"query": QUERY, "texts": documents, "truncate": false});
    let refused = server.post("/rerank", &asked).await;
    assert_eq!(refused.status, 422);
    assert!(refused.tei_error().0.contains("text 1 has more than"));
    let whole = json!({"query": QUERY, "texts": ["money"], "truncate": false});
    assert_eq!(server.post("/rerank", &whole).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_ranked_are_refused_in_the_routes_dialect() {
    let server = start().await;
    let many = vec!["a"; 2049];
    for path in ["/rerank", "/v1/rerank", "/v2/rerank"] {
        for (changes, reason, status) in [
            (json!({"documents": []}), "is empty", 400),
            (json!({"documents": many}), "2049 texts", 400),
            (json!({"documents": ["a", ""]}), "text 1 is empty", 400),
            (json!({"documents": "a"}), "expected a list", 400),
            (
                json!({"documents": [1]}),
                "an object with the field text",
                400,
            ),
            (json!({"documents": null}), "documents to rank", 400),
            (json!({"query": ""}), "the query is empty", 400),
            (json!({"query": 7}), "expected a string", 400),
            (json!({"query": ["a"]}), "expected a string", 400),
            (json!({"query": null}), "expected a string", 400),
            (json!({"top_n": 0}), "top_n is 0", 400),
            (json!({"top_n": -1}), "expected usize", 400),
            (json!({"top_n": 1.5}), "expected usize", 400),
            (json!({"top_n": "2"}), "expected usize", 400),
            (
                json!({"return_documents": "yes"}),
                "expected a boolean",
                400,
            ),
            (
                json!({"max_tokens_per_doc": 3}),
                "leave max_tokens_per_doc out",
                400,
            ),
            (
                json!({"model": "another"}),
                "\"another\" is not served here",
                404,
            ),
            (json!({"model": 7}), "expected a string", 400),
        ] {
            let mut asked = json!({"model": MODEL, "query": QUERY, "documents": DOCUMENTS});
            for (field, value) in changes.as_object().unwrap() {
                asked[field] = value.clone();
            }
            let answer = server.post(path, &asked).await;
            let said = check_error(path, &answer);
            assert!(said.contains(reason), "{path} {reason}: {said}");
            // The dialect of text-embeddings-inference has other statuses for two kinds of them.
            let status = match (path, reason) {
                ("/rerank", "2049 texts") => 413,
                ("/rerank", "is empty") => 400,
                ("/rerank", _) if status == 400 => 422,
                _ => status,
            };
            assert_eq!(answer.status, status, "{path} {reason}");
        }
        let both = json!({"query": QUERY, "texts": ["a"], "documents": ["a"]});
        let neither = json!({"query": QUERY, "texts": null});
        for (asked, wanted) in [(both, path != "/rerank"), (neither, false)] {
            let answer = server.post(path, &asked).await;
            // Routes of Jina and Cohere know no texts, and pass them over as every field that they do not know.
            assert_eq!(answer.status == 200, wanted, "{path} {asked}");
        }
    }
    // A huge top_n is all of them; a body that says one that no number holds is refused.
    let body = format!(
        "{{\"query\": \"a\", \"documents\": [\"b\"], \"top_n\": {}}}",
        u64::MAX
    );
    let answer = server
        .raw(&client::post("/v1/rerank", "", body.as_bytes()))
        .await;
    assert_eq!(answer.json()["results"].as_array().unwrap().len(), 1);
    let body = body.replace(&u64::MAX.to_string(), "1e300");
    let answer = server
        .raw(&client::post("/v1/rerank", "", body.as_bytes()))
        .await;
    assert_eq!(answer.status, 400);
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
    assert_eq!(server.metric("isovec_serve_bytes_in_work").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_many_documents_make_huge_is_refused_before_it_is_read_with_each() {
    let mut options = options();
    options.max_body = 1 << 20;
    options.max_bytes = 1 << 20;
    let server = Running::over(reranker().await, options).await;
    let query = "a ".repeat(100_000);
    let asked = |documents: usize| json!({"query": query, "documents": vec!["b"; documents]});
    let answer = server.post("/v1/rerank", &asked(6)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.openai_error().2, json!("query"));
    assert_eq!(server.post("/v1/rerank", &asked(5)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn rerankers_are_described_measured_and_ready() {
    let server = start().await;
    let info = server.get("/info").await.json();
    assert_eq!(info["model_id"], MODEL);
    assert_eq!(
        info["model_type"]["reranker"]["id2label"],
        json!({"0": "relevance"})
    );
    assert_eq!(info["max_input_length"], server.model.max_length());
    assert_eq!(info["task"], "rerank");
    let listed = server.get("/v1/models").await.json();
    assert_eq!(listed["data"][0]["task"], "rerank");
    let ran = || server.model.stats().engine.sessions.run.count;
    let before = ran();
    assert_eq!(server.get("/health/ready").await.status, 200);
    assert!(before < ran(), "a probe is computed");
    let asked = json!({"query": QUERY, "documents": DOCUMENTS});
    assert_eq!(server.post("/v1/rerank", &asked).await.status, 200);
    assert_eq!(
        server
            .metric("isovec_serve_texts_total{model=\"tiny\"}")
            .await,
        5
    );
    let page = server.get("/metrics").await;
    assert!(page.text().contains("task=\"rerank\""), "{}", page.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decoder_gets_its_instruction() {
    let folder = data("tiny-decoder-reranker");
    let reference = std::fs::read(folder.join("reference.json")).unwrap();
    let all: Value = serde_json::from_slice(&reference).unwrap();
    let config = Which::Portable.configure(EmbeddingConfig::default());
    let builder = Reranker::builder(folder).config(config);
    let server = Running::over(builder.load().await.unwrap(), options()).await;
    // What the model's files make of scores is raw; the route gives probabilities.
    let documents = all["documents"].as_array().unwrap();
    let documents: Vec<&Value> = documents.iter().filter(|own| own["text"] != "").collect();
    let texts: Vec<&Value> = documents.iter().map(|document| &document["text"]).collect();
    for (field, more) in [
        ("logit", json!({})),
        ("instructed", json!({"instruction": all["instruction"]})),
        ("short", json!({"prompt_name": "short"})),
    ] {
        let mut asked = json!({"query": all["query"], "texts": texts, "raw_scores": true});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let rows = server.post("/rerank", &asked).await.json();
        for row in rows.as_array().unwrap() {
            let wanted = documents[row["index"].as_u64().unwrap() as usize][field].as_f64();
            let far = row["score"].as_f64().unwrap() - wanted.unwrap();
            assert!(far.abs() <= 1e-5, "{field}: {row}");
        }
        asked = json!({"query": all["query"], "documents": texts});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = server.post("/v2/rerank", &asked).await;
        for row in answer.json()["results"].as_array().unwrap() {
            let wanted = documents[row["index"].as_u64().unwrap() as usize][field].as_f64();
            let wanted = 1.0 / (1.0 + (-wanted.unwrap()).exp());
            let far = row["relevance_score"].as_f64().unwrap() - wanted;
            assert!(far.abs() <= 1e-5, "{field}: {row}");
        }
    }
    for (more, words) in [
        (
            json!({"prompt_name": "short", "instruction": "x"}),
            "one of them",
        ),
        (json!({"prompt_name": "none such"}), "short"),
    ] {
        let mut asked = json!({"query": "a", "texts": ["b"]});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = server.post("/rerank", &asked).await;
        assert!((400..500).contains(&answer.status), "{answer:?}");
        assert!(
            check_error("/rerank", &answer).contains(words),
            "{answer:?}"
        );
    }
}
