//! The one error type of this crate: what was wrong, where, and what to do.

use isovec_engine::EngineError;
use isovec_tokenize::TokenizeError;

/// Shorthand used throughout the crate.
pub type Result<T, E = OptimizeError> = std::result::Result<T, E>;

/// Why a model was not made smaller.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OptimizeError {
    /// Reading or writing the model failed.
    #[error(transparent)]
    Engine(#[from] EngineError),

    /// The tokenizer could not be read, or could not read a text.
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),

    /// The table of tokens is stored in fewer bits already, or in parts.
    #[error(
        "{origin}: {tensor}, the table of tokens, is not stored as it is used, but made by {maker}; optimise the original model, and choose its precision at the same time"
    )]
    AlreadyQuantized {
        /// The model.
        origin: String,
        /// The table.
        tensor: String,
        /// The operator that makes it of what is stored: `DequantizeLinear`, `Cast`.
        maker: String,
    },

    /// A table is used for something else than looking tokens up, so its rows cannot be taken out.
    #[error(
        "{origin}: node {node} uses {tensor} as well, the table of tokens; export the model without that node (a language model's head, for example)"
    )]
    SharedWeights {
        /// The model.
        origin: String,
        /// The table.
        tensor: String,
        /// The other node, as `name (operator)`.
        node: String,
    },

    /// This model cannot be changed in this way.
    #[error("{origin} cannot be optimised so: {reason}. {hint}")]
    Unsuitable {
        /// The model.
        origin: String,
        /// The reason.
        reason: String,
        /// What to do instead.
        hint: String,
    },

    /// The texts that were given are none, or say nothing.
    #[error("{0}")]
    Texts(String),

    /// A size or a bound that cannot be met.
    #[error("{what} is {asked}, and may be {allowed}")]
    Size {
        /// What was asked for.
        what: &'static str,
        /// The value.
        asked: String,
        /// Values that can be met.
        allowed: String,
    },

    /// A bound of a budget that is none, or a budget without bounds.
    #[error(
        "the bound {given:?} cannot be kept to: {reason}; bounds are like cosine>=0.995, recall@10>=0.98, size<=12MB, latency<=5ms"
    )]
    Bound {
        /// The bound, as it was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A language whose letters are not known.
    #[error(
        "no letters are known of the language {given:?}; give codes of BCP 47, as en, de or zh-Hant"
    )]
    Language {
        /// The language, as it was given.
        given: String,
    },

    /// A number that is not finite where one is needed.
    #[error("{what} holds a value that is not finite; the model or its precision is broken")]
    NotFinite {
        /// Where it is.
        what: String,
    },
}

impl OptimizeError {
    /// A stable, machine-readable name of the kind: the cause's own, or `Optimize`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.kind(),
            Self::Tokenize(error) => error.kind(),
            _ => "Optimize",
        }
    }
}
