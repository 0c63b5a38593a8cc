//! A route for a task that the model does not have.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::embed_all::multi_vector;
use crate::predict::classifier;
use crate::rerank::reranker;
use crate::running::{MODEL, Running, options};
use crate::sparse::loaded as sparse;

/// A request of every route that computes, and the task that it is for.
fn requests() -> [(&'static str, Value, &'static str); 12] {
    let similar = json!({"source_sentence": "a", "sentences": ["b"]});
    let documents = json!({"query": "a", "documents": ["b"]});
    [
        ("/v1/embeddings", json!({"input": "a"}), "embed"),
        ("/embed", json!({"inputs": "a"}), "embed"),
        ("/", json!({"inputs": "a"}), "embed"),
        ("/similarity", json!({"inputs": similar}), "embed"),
        ("/rerank", json!({"query": "a", "texts": ["b"]}), "rerank"),
        ("/rerank", documents.clone(), "rerank"),
        ("/v1/rerank", documents.clone(), "rerank"),
        ("/v2/rerank", documents, "rerank"),
        ("/predict", json!({"inputs": "a"}), "classify"),
        ("/embed_sparse", json!({"inputs": "a"}), "sparse"),
        ("/embed_all", json!({"inputs": "a"}), "multi_vector"),
        ("/v1/multi-vector", json!({"input": "a"}), "multi_vector"),
    ]
}

fn check_refused(path: &str, answer: &Answer) {
    let said = if path.starts_with("/v1") {
        assert_eq!(answer.status, 400, "{path}");
        let (said, _, param, code) = answer.openai_error();
        assert_eq!(
            (param, code),
            (json!("model"), json!("model_not_supported"))
        );
        said
    } else if path.starts_with("/v2") {
        assert_eq!(answer.status, 400, "{path}");
        answer.cohere_error()
    } else {
        assert_eq!(answer.status, 424, "{path}");
        let (said, kind) = answer.tei_error();
        assert_eq!(kind, "backend");
        said
    };
    assert!(
        said.contains("this route needs") && said.contains(MODEL),
        "{said}"
    );
}

async fn check<H>(server: &Running<H>, task: &str) {
    for (path, asked, needs) in requests() {
        for name in [None, Some(MODEL)] {
            let mut asked = asked.clone();
            if let Some(name) = name {
                asked["model"] = name.into();
            }
            let answer = server.post(path, &asked).await;
            if needs == task {
                assert_eq!(answer.status, 200, "{path}: {answer:?}");
            } else {
                check_refused(path, &answer);
            }
        }
    }
    assert_eq!(server.metric("isovec_serve_requests_in_work").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_model_answers_on_the_routes_of_its_task_and_no_others() {
    check(&Running::start().await, "embed").await;
    check(&Running::over(reranker().await, options()).await, "rerank").await;
    check(
        &Running::over(classifier().await, options()).await,
        "classify",
    )
    .await;
    check(&Running::over(sparse().await, options()).await, "sparse").await;
    let tokens = Running::over(multi_vector().await, options()).await;
    check(&tokens, "multi_vector").await;
}
