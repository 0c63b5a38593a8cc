//! The reason why a graph cannot be lowered.

/// A graph that this compiler has no program for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unlowered {
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
        /// The operator, with its domain where that is not the default.
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

/// Why a node has no lowering; the node is named where it is known.
pub(crate) type Why<T> = Result<T, String>;
