//! Why there is no program for a graph.

use isovec_engine::EngineError;

/// A graph that this crate has no program for; another engine may take it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A graph without a convolution is another crate's.
    #[error("it has no convolution")]
    NoConvolution,
    /// An operator that is not known at all.
    #[error("operator {operator} of node {node:?} is not known")]
    Operator {
        /// The operator, with its domain where that is not the default.
        operator: String,
        /// The node's name; its output's where it has none.
        node: String,
    },
    /// An operator that is known, used in a way that is not.
    #[error("operator {operator} of node {node:?}: {why}")]
    Use {
        /// The operator.
        operator: String,
        /// The node's name; its output's where it has none.
        node: String,
        /// What about it.
        why: String,
    },
    /// The graph as a whole.
    #[error("{0}")]
    Graph(String),
}

/// Why a graph cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The graph is not one that this crate has a program for.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The model is broken, its weights cannot be read, or the load was cancelled.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why a node is not lowered; the node is named where it is known.
#[derive(Debug)]
pub(crate) enum Stop {
    /// What is not taken about it.
    Use(String),
    /// What ends the load.
    Engine(EngineError),
}

impl From<String> for Stop {
    fn from(why: String) -> Self {
        Self::Use(why)
    }
}

impl From<&str> for Stop {
    fn from(why: &str) -> Self {
        Self::Use(why.to_owned())
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

pub(crate) type Why<T> = Result<T, Stop>;
