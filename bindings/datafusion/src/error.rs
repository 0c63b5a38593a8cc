//! What was wrong with a query, where, and what to do.

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use isovec::fingerprint::Difference;

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can be wrong with models, a query or its rows.
///
/// DataFusion gives those of planning as [`DataFusionError::Plan`], and those of rows as [`DataFusionError::External`] with this
/// error inside; [`DataFusionError::find_root`] finds it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Functions without a model to compute with.
    #[error("there is no model; add an embedder or a reranker to `Models`")]
    NoModels,

    /// Two models of one kind have the same name.
    #[error("two {kind}s are named {name:?}; a name stands for one model")]
    SameName {
        /// `embedder` or `reranker`.
        kind: &'static str,
        /// The name.
        name: String,
    },

    /// A query names a model that is not there.
    #[error("{function}: there is no {kind} named {name:?}; there is {}", .known.join(", "))]
    UnknownModel {
        /// The function.
        function: String,
        /// `embedder` or `reranker`.
        kind: &'static str,
        /// The name in the query.
        name: String,
        /// The names that are there.
        known: Vec<String>,
    },

    /// An argument of the wrong type, or too many or too few of them.
    #[error("{function}: {problem}; it is called as {usage}")]
    Arguments {
        /// The function.
        function: String,
        /// What is wrong.
        problem: String,
        /// How the function is called.
        usage: &'static str,
    },

    /// Vectors of two models.
    #[error(
        "similarity: the vectors of {here:?} and of {there:?} were not made the same way and cannot be compared ({}); embed one side again with the other's model",
        .differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
    )]
    Incompatible {
        /// The model of the first.
        here: String,
        /// The model of the second.
        there: String,
        /// Every entry of the two fingerprints that differs.
        differences: Vec<Difference>,
    },

    /// The metadata of a column of vectors that cannot be read.
    #[error("{function}: the metadata {key:?} of an argument cannot be read: {detail}")]
    Metadata {
        /// The function.
        function: &'static str,
        /// The entry.
        key: &'static str,
        /// The fault.
        detail: String,
    },

    /// A call where DataFusion cannot compute it.
    #[error(
        "{function} cannot be computed in {place}; compute it in the SELECT of a subquery, and name its column here"
    )]
    Place {
        /// The function.
        function: String,
        /// The part of the query.
        place: &'static str,
    },

    /// A row that cannot be computed.
    #[error("{function}: row {row} (from 0) of a batch of {rows}, {text}: {source}")]
    Row {
        /// The function.
        function: &'static str,
        /// The row's place in its batch. DataFusion does not say where in the table a batch begins.
        row: usize,
        /// The rows of the batch.
        rows: usize,
        /// How the row's text begins.
        text: String,
        /// The cause.
        source: Box<isovec::Error>,
    },

    /// A row with vectors that cannot be compared.
    #[error("similarity: row {row} (from 0) of a batch of {rows}: {problem}")]
    Vectors {
        /// The row's place in its batch.
        row: usize,
        /// The rows of the batch.
        rows: usize,
        /// What is wrong.
        problem: String,
    },

    /// Rows that cannot be computed, and none of them is to blame.
    #[error("{function}: a batch of {rows} rows cannot be computed: {source}")]
    Batch {
        /// The function.
        function: &'static str,
        /// The rows of the batch.
        rows: usize,
        /// The cause.
        source: Box<isovec::Error>,
    },
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Row { .. } | Error::Batch { .. } | Error::Vectors { .. } => {
                Self::External(Box::new(error))
            }
            planned => Self::Plan(planned.to_string()),
        }
    }
}

/// The error of arguments that do not fit a function.
pub(crate) fn arguments(function: &str, usage: &'static str, problem: impl Into<String>) -> Error {
    Error::Arguments {
        function: function.to_owned(),
        problem: problem.into(),
        usage,
    }
}

/// The error of an argument's type.
pub(crate) fn wrong_type(
    function: &str,
    usage: &'static str,
    place: usize,
    wanted: &str,
    got: &DataType,
) -> Error {
    let problem = format!("argument {} is {got}, and {wanted} is wanted", place + 1);
    arguments(function, usage, problem)
}
