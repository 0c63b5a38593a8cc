//! isovec's models as SQL functions of [Apache DataFusion](https://datafusion.apache.org).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use datafusion::prelude::SessionContext;
//! use isovec::{Embedder, models};
//!
//! let context = SessionContext::new();
//! isovec_datafusion::register(&context, Embedder::load(models::ALL_MINILM_L6_V2).await?)?;
//! context.register_csv("docs", "docs.csv", Default::default()).await?;
//! let found = context.sql(
//!     "SELECT id, similarity(embed(body), embed_query('what will the weather be like?')) AS score
//!      FROM docs ORDER BY score DESC LIMIT 10",
//! );
//! found.await?.show().await?;
//! # Ok(()) }
//! ```
//!
//! | function | gives |
//! |---|---|
//! | `embed(text[, model])` | the vector of a text, with the model's default prompt: `FixedSizeList<Float32>` |
//! | `embed_query(text[, model])` | the same with the prompt for texts to search with |
//! | `embed_passage(text[, model])` | the same with the prompt for texts to search in |
//! | `similarity(a, b[, metric])` | how alike two vectors are, by the model's metric: `Float32` |
//! | `rerank(query, text[, model])` | how relevant a text is to a query: `Float32` |
//! | `chunk(text[, max_tokens[, model]])` | the text in parts that the model sees whole: `List<Utf8>` |
//!
//! Texts are `Utf8`, `LargeUtf8`, `Utf8View`, or a dictionary of these. A null gives a null. Another type is an error while
//! the query is planned, and so are a model's name that nobody [registered](Models) and a name that is no literal.
//!
//! # Design
//!
//! **Vectors know their model** (`space.rs`). The metadata of a column of vectors has the model's fingerprint. `similarity`
//! compares the two while the query is planned, so that no row is computed for a query that cannot be answered.
//!
//! **A model computes once, and no more than it has to** (`plan.rs`). DataFusion writes an expression of a subquery out in
//! every filter above it, and computes a filter's functions before its cheap conditions. That is right where functions cost
//! nothing. A rule of the optimizer puts the calls of these functions behind the cheap conditions, computes equal calls of a
//! node once, and makes a column of those in `ORDER BY`. To keep the optimizer from copying them, the functions are declared
//! volatile, although they are not.
//!
//! **Calls are joined** (`calls.rs`). The partitions of all queries give their rows to one batcher for each model. The batcher
//! refuses calls when its queue is full, which a server wants and a query does not: queries wait here.
//!
//! **A failure names its row** (`calls.rs`). Where the engine cannot say which text it failed on, halves are tried until one
//! is left.

mod calls;
mod chunk;
mod distinct;
mod embed;
mod error;
mod frame;
mod models;
mod plan;
mod rerank;
mod similarity;
mod space;
mod texts;
mod vectors;

/// Compiles the examples of the book.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../docs/datafusion.md")]
    struct DataFusion;
}

use std::sync::Arc;

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::async_udf::AsyncScalarUDF;
use datafusion::prelude::SessionContext;

use isovec::Prompt;

pub use error::{Error, Result};
pub use frame::DataFrameExt;
pub use models::Models;
pub use space::{FINGERPRINT, METRIC, MODEL};

/// Registers the functions of these models in a session. Functions of the same names that were registered before are replaced.
///
/// # Errors
/// [`Error::SameName`] for two models of one name, and [`Error::NoModels`] for none.
pub fn register(context: &SessionContext, models: impl Into<Models>) -> Result<()> {
    let functions = functions(models)?;
    context.remove_optimizer_rule(plan::NAME);
    context.add_optimizer_rule(Arc::new(plan::Once::of(&functions)));
    for function in functions {
        context.register_udf(Arc::unwrap_or_clone(function));
    }
    Ok(())
}

/// The same for the state of a session that is still to be made, for programs that build states. Processes that share a
/// query register the same models in the same order.
///
/// # Errors
/// As [`register`].
pub fn with_functions(
    mut builder: SessionStateBuilder,
    models: impl Into<Models>,
) -> Result<SessionStateBuilder> {
    let functions = functions(models)?;
    let rule = Arc::new(plan::Once::of(&functions));
    let all = builder.scalar_functions();
    all.get_or_insert_default().extend(functions);
    Ok(builder.with_optimizer_rule(rule))
}

/// The functions of these models alone, for what looks them up by their names and plans nothing.
///
/// # Errors
/// As [`register`].
pub fn functions(models: impl Into<Models>) -> Result<Vec<Arc<ScalarUDF>>> {
    let models = Arc::new(models.into());
    models.check()?;
    let mut functions = vec![Arc::new(ScalarUDF::from(similarity::Similarity::new()))];
    if models.has_embedders() {
        for (name, prompt) in [
            (embed::EMBED, Prompt::Default),
            (embed::EMBED_QUERY, Prompt::Query),
            (embed::EMBED_PASSAGE, Prompt::Passage),
        ] {
            let embed = embed::Embed::new(name, prompt, Arc::clone(&models));
            functions.push(Arc::new(
                AsyncScalarUDF::new(Arc::new(embed)).into_scalar_udf(),
            ));
        }
        let chunk = chunk::Chunk::new(Arc::clone(&models));
        functions.push(Arc::new(ScalarUDF::from(chunk)));
    }
    if models.has_rerankers() {
        let rerank = rerank::Rerank::new(models);
        functions.push(Arc::new(
            AsyncScalarUDF::new(Arc::new(rerank)).into_scalar_udf(),
        ));
    }
    Ok(functions)
}
