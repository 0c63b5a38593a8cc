//! Models and tables that the tests share.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Float32Type;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use isovec::config::EngineChoice;
use isovec::{Embedder, EmbeddingConfig, Reranker};

/// A folder of the repository's test data.
pub(crate) fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(name)
}

/// The portable engine, which gives a text the same bits in every batch.
pub(crate) fn config() -> EmbeddingConfig {
    EmbeddingConfig::default().with_engine(EngineChoice::Portable)
}

pub(crate) async fn tiny() -> Embedder {
    tiny_with(config()).await
}

pub(crate) async fn tiny_with(config: EmbeddingConfig) -> Embedder {
    let builder = Embedder::builder(data("tiny-bert"));
    builder.config(config).load().await.unwrap()
}

pub(crate) async fn reranker() -> Reranker {
    let builder = Reranker::builder(data("tiny-reranker"));
    builder.config(config()).load().await.unwrap()
}

/// A session of two partitions with small batches, so that a table is many of them.
pub(crate) fn session() -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(8);
    SessionContext::new_with_config(config)
}

/// Texts of different lengths, each another.
pub(crate) fn texts(count: usize) -> Vec<String> {
    (0..count)
        .map(|at| {
            let words = ["rain", "falls", "on", "old", "hills", "again"];
            let words: Vec<&str> = (0..=at % 7).map(|word| words[(at + word) % 6]).collect();
            format!("{at} {}", words.join(" "))
        })
        .collect()
}

/// A table `docs` of `id` and `body` in four partitions.
pub(crate) fn register_docs(context: &SessionContext, bodies: &ArrayRef) {
    let rows = bodies.len();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", ids, false),
        ("body", Arc::clone(bodies), true),
    ]);
    let batch = batch.unwrap();
    let step = rows.div_ceil(4).max(1);
    let parts = (0..rows)
        .step_by(step)
        .map(|at| vec![batch.slice(at, step.min(rows - at))])
        .collect();
    let table = MemTable::try_new(batch.schema(), parts).unwrap();
    context.register_table("docs", Arc::new(table)).unwrap();
}

/// The rows of a query as one batch.
pub(crate) async fn rows(context: &SessionContext, sql: &str) -> Result<RecordBatch> {
    let frame = context.sql(sql).await?;
    let schema = Arc::clone(frame.schema().inner());
    let batches = frame.collect().await?;
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    Ok(datafusion::arrow::compute::concat_batches(
        &schema, &batches,
    )?)
}

/// The vectors of a column, row by row.
pub(crate) fn vectors(batch: &RecordBatch, column: &str) -> Vec<Option<Vec<f32>>> {
    let lists = batch.column_by_name(column).unwrap();
    let lists = lists.as_fixed_size_list().iter();
    lists
        .map(|list| Some(list?.as_primitive::<Float32Type>().values().to_vec()))
        .collect()
}

/// The numbers of a column, row by row.
pub(crate) fn scores(batch: &RecordBatch, column: &str) -> Vec<Option<f32>> {
    let numbers = batch.column_by_name(column).unwrap();
    numbers.as_primitive::<Float32Type>().iter().collect()
}

/// The numbers of the column `id`.
pub(crate) fn ids(batch: &RecordBatch) -> Vec<i64> {
    let ids = batch.column_by_name("id").unwrap();
    let ids = ids.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
    ids.values().to_vec()
}
