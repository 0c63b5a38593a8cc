//! Runs the SQL of the book.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{register_docs, reranker, rows, session, texts, tiny};
use datafusion::arrow::array::{ArrayRef, StringArray};
use isovec_datafusion::{Models, register};

const CHAPTER: &str = include_str!("../../../docs/datafusion.md");

/// The examples in SQL, in their order.
fn examples() -> Vec<String> {
    let text = CHAPTER.replace("\r\n", "\n");
    let blocks = text.split("```sql\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").unwrap().0.trim().to_owned());
    blocks.collect()
}

#[tokio::test]
async fn every_example_runs_in_its_order() {
    let (context, embedder) = (session(), tiny().await);
    let models = Models::new()
        .with_embedder("small", &embedder)
        .with_embedder("large", &embedder)
        .with_reranker("cross", &reranker().await);
    register(&context, models).unwrap();
    let bodies: ArrayRef = Arc::new(StringArray::from(texts(20)));
    register_docs(&context, &bodies);
    let examples = examples();
    assert!(examples.len() > 5, "{examples:?}");
    for sql in examples {
        let found = rows(&context, &sql).await;
        let found = found.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let has_rows = sql.starts_with("SELECT");
        assert_eq!(found.num_rows() > 0, has_rows, "{sql}");
    }
}
