//! The functions for those who build queries in Rust.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{ids, register_docs, reranker, rows, scores, session, texts, tiny, vectors};
use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::DataType;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionContext, col};
use isovec_datafusion::{DataFrameExt, Models, functions, register, with_functions};

fn docs(context: &SessionContext, count: usize) {
    let mut texts: Vec<_> = texts(count).into_iter().map(Some).collect();
    texts.push(None);
    let bodies: ArrayRef = Arc::new(StringArray::from_iter(texts));
    register_docs(context, &bodies);
}

#[tokio::test]
async fn a_frame_is_embedded_searched_and_ranked() {
    let (context, embedder, reranker) = (session(), tiny().await, reranker().await);
    let models = Models::new()
        .with_embedder("tiny", &embedder)
        .with_reranker("cross", &reranker);
    register(&context, models).unwrap();
    docs(&context, 30);
    let bodies = embedder.embed(texts(30)).await.unwrap();
    let query = embedder.embed_query("old hills").await.unwrap();
    let near = bodies.search_one(&query, 10).unwrap();
    let found = context.table("docs").await.unwrap();
    let found = found.embedded(col("body"), Some("tiny"), "vector").unwrap();
    let found = found.nearest(col("vector"), "old hills", None, 10).unwrap();
    let batches = found.clone().collect().await.unwrap();
    let nearest = concat_batches(&batches[0].schema(), &batches).unwrap();
    let expected: Vec<i64> = near.iter().map(|hit| hit.index as i64).collect();
    assert_eq!(ids(&nearest), expected);
    let expected: Vec<_> = near.iter().map(|hit| Some(hit.score)).collect();
    assert_eq!(scores(&nearest, "score"), expected);
    assert_eq!(
        vectors(&nearest, "vector")[0].as_deref(),
        bodies.get(near[0].index)
    );

    let texts = texts(30);
    let candidates: Vec<&String> = near.iter().map(|hit| &texts[hit.index]).collect();
    let ranked = reranker.rank("old hills", candidates).await.unwrap();
    let expected: Vec<i64> = ranked[..3]
        .iter()
        .map(|found| near[found.index].index as i64)
        .collect();
    let best = found
        .reranked("old hills", col("body"), Some("cross"), 3)
        .unwrap();
    let batches = best.collect().await.unwrap();
    assert_eq!(
        ids(&concat_batches(&batches[0].schema(), &batches).unwrap()),
        expected
    );
}

#[tokio::test]
async fn a_frame_of_a_session_without_functions_says_so() {
    let context = session();
    docs(&context, 3);
    let frame = context.table("docs").await.unwrap();
    let error = frame.embedded(col("body"), None, "vector").unwrap_err();
    assert!(error.to_string().contains("embed"), "{error}");
}

#[tokio::test]
async fn a_state_and_a_list_have_the_same_functions() {
    let embedder = tiny().await;
    let sql = "SELECT embed(body) AS v FROM docs ORDER BY id";
    let builder = SessionStateBuilder::new().with_default_features();
    let state = with_functions(builder, &embedder).unwrap().build();
    let of_state = SessionContext::new_with_state(state);
    docs(&of_state, 5);
    let found = rows(&of_state, sql).await.unwrap();
    let expected = embedder.embed(texts(5)).await.unwrap().into_vecs();
    let rows_of = |found| {
        vectors(&found, "v")
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    assert_eq!(rows_of(found), expected);
    // `ORDER BY` with a call needs the rule, which came with them.
    let sorted = "SELECT id FROM docs ORDER BY similarity(embed(body), embed('rain')) LIMIT 2";
    assert_eq!(rows(&of_state, sorted).await.unwrap().num_rows(), 2);

    let context = session();
    for function in functions(&embedder).unwrap() {
        context.register_udf(Arc::unwrap_or_clone(function));
    }
    docs(&context, 5);
    assert_eq!(rows_of(rows(&context, sql).await.unwrap()), expected);
    let schema = context.table("docs").await.unwrap().schema().clone();
    assert_eq!(schema.field(1).data_type(), &DataType::Utf8);
}
