//! The functions for those who build queries in Rust.

use datafusion::error::Result;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::DataFrame;

use crate::embed::{EMBED, EMBED_QUERY};

/// The column of scores that [`nearest`](DataFrameExt::nearest) and [`reranked`](DataFrameExt::reranked) add.
const SCORE: &str = "score";

/// isovec's functions on a [`DataFrame`] of a session in which they are [registered](crate::register). `model` is one of the
/// registered names; `None` is the first model.
///
/// ```no_run
/// # async fn example(context: datafusion::prelude::SessionContext) -> datafusion::error::Result<()> {
/// use datafusion::prelude::col;
/// use isovec_datafusion::DataFrameExt;
///
/// let found = context
///     .table("docs").await?
///     .embedded(col("body"), None, "vector")?
///     .nearest(col("vector"), "what will the weather be like?", None, 100)?
///     .reranked("what will the weather be like?", col("body"), None, 10)?;
/// found.show().await?;
/// # Ok(()) }
/// ```
pub trait DataFrameExt: Sized {
    /// Adds the column `into` with the vectors of texts, as `embed` gives them.
    ///
    /// # Errors
    /// Those of planning: no such function, model or column, or a column that is no text.
    fn embedded(self, texts: Expr, model: Option<&str>, into: &str) -> Result<Self>;

    /// The `k` rows whose vectors are most alike the query, best first, with the column `score`. Rows without a vector are left
    /// out. Exact: every vector is compared.
    ///
    /// # Errors
    /// As [`embedded`](Self::embedded), and for vectors of another model.
    fn nearest(self, vectors: Expr, query: &str, model: Option<&str>, k: usize) -> Result<Self>;

    /// The `k` rows whose texts are most relevant to the query by a reranker, best first, with the column `score`. Every row is
    /// computed, so there should be few. Rows without a text are left out.
    ///
    /// # Errors
    /// As [`embedded`](Self::embedded).
    fn reranked(self, query: &str, texts: Expr, model: Option<&str>, k: usize) -> Result<Self>;
}

impl DataFrameExt for DataFrame {
    fn embedded(self, texts: Expr, model: Option<&str>, into: &str) -> Result<Self> {
        let vectors = call(&self, EMBED, vec![texts], model)?;
        self.with_column(into, vectors)
    }

    fn nearest(self, vectors: Expr, query: &str, model: Option<&str>, k: usize) -> Result<Self> {
        let query = call(&self, EMBED_QUERY, vec![lit(query)], model)?;
        let score = call(&self, "similarity", vec![vectors, query], None)?;
        best(self, score, k)
    }

    fn reranked(self, query: &str, texts: Expr, model: Option<&str>, k: usize) -> Result<Self> {
        let score = call(&self, "rerank", vec![lit(query), texts], model)?;
        best(self, score, k)
    }
}

fn best(frame: DataFrame, score: Expr, k: usize) -> Result<DataFrame> {
    let score_column = || Expr::Column(datafusion::common::Column::from_name(SCORE));
    frame
        .with_column(SCORE, score)?
        .filter(score_column().is_not_null())?
        .sort(vec![score_column().sort(false, false)])?
        .limit(0, Some(k))
}

/// A call of a function that is registered in the session of a frame.
fn call(frame: &DataFrame, name: &str, mut args: Vec<Expr>, model: Option<&str>) -> Result<Expr> {
    args.extend(model.map(lit));
    Ok(frame.registry().udf(name)?.call(args))
}
