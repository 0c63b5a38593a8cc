//! The one error type of this crate: what was wrong, where, and what to do.

/// Shorthand used throughout the crate.
pub type Result<T, E = TokenizeError> = std::result::Result<T, E>;

/// Everything that can go wrong between a tokenizer's files and token ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizeError {
    /// The bundle has no tokenizer that can be read.
    #[error("{origin} has no tokenizer.json. {hint}")]
    MissingTokenizer {
        /// The folder, model id or byte set that was searched.
        origin: String,
        /// What to do.
        hint: String,
    },

    /// A file of the tokenizer has a fault: it is cut short, corrupted or inconsistent.
    #[error("{origin}: {file} is not a usable tokenizer: {detail}")]
    InvalidTokenizer {
        /// The folder, model id or byte set.
        origin: String,
        /// The file inside it.
        file: String,
        /// The fault.
        detail: String,
    },

    /// The tokenizer is intact, but uses something that is not implemented.
    #[error("{origin}: {file} uses {feature}, which is not supported. {hint}")]
    UnsupportedTokenizer {
        /// The folder, model id or byte set.
        origin: String,
        /// The file inside it.
        file: String,
        /// The unsupported feature.
        feature: String,
        /// What to do instead.
        hint: String,
    },

    /// A limit that leaves no room for a single token of text.
    #[error(
        "a limit of {limit} tokens has no room for text: the special tokens alone take {special}; raise the limit to at least {}",
        .special + 1
    )]
    LimitTooSmall {
        /// The requested limit, in tokens.
        limit: usize,
        /// How many special tokens the tokenizer adds.
        special: usize,
    },

    /// A text that the vocabulary cannot express, in a tokenizer without an unknown token.
    #[error(
        "{origin}: the vocabulary has no token for part of the text and does not contain the unknown token ({unknown}); use the tokenizer.json that belongs to the model"
    )]
    NoUnknownToken {
        /// The folder, model id or byte set.
        origin: String,
        /// The unknown token that the file names.
        unknown: String,
    },

    /// A token id that the vocabulary does not have.
    #[error(
        "{origin}: the token id {id} is beyond the vocabulary, whose largest is {largest}; use the ids of this model's tokenizer"
    )]
    UnknownId {
        /// The folder, model id or byte set.
        origin: String,
        /// The id.
        id: u32,
        /// The largest id that there is.
        largest: u32,
    },

    /// The file would need more memory or steps than the size of the text, or of the file, allows.
    #[error(
        "{origin}: {detail}, the most for {of}; the tokenizer is broken or hostile; use another one or a shorter text"
    )]
    TooCostly {
        /// The folder, model id or byte set.
        origin: String,
        /// The part of the tokenizer, the resource, and the bound.
        detail: String,
        /// The object of the bound: a text of so many bytes, or the file.
        of: String,
    },

    /// Token ids that cannot be made a text.
    #[error("{origin}: token ids cannot be made a text: {detail}")]
    Undecodable {
        /// The folder, model id or byte set.
        origin: String,
        /// What the tokenizer's file asks for.
        detail: String,
    },

    /// A component of the tokenizer failed on this text.
    #[error("{origin}: the tokenizer failed on a text of {bytes} bytes: {detail}")]
    Failed {
        /// The folder, model id or byte set.
        origin: String,
        /// Length of the text in bytes.
        bytes: usize,
        /// The component's own words.
        detail: String,
    },
}

impl TokenizeError {
    /// A stable, machine-readable name of the kind, the same in Rust, in JSON and in JavaScript.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::MissingTokenizer { .. } => "MissingTokenizer",
            Self::InvalidTokenizer { .. } => "InvalidTokenizer",
            Self::UnsupportedTokenizer { .. } => "UnsupportedTokenizer",
            Self::LimitTooSmall { .. } => "LimitTooSmall",
            Self::NoUnknownToken { .. } => "NoUnknownToken",
            Self::TooCostly { .. } => "TooCostly",
            Self::Undecodable { .. } => "Undecodable",
            Self::UnknownId { .. } => "UnknownId",
            Self::Failed { .. } => "Failed",
        }
    }
}

/// Why a part of a tokenizer's file cannot be used, before its place is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is broken or contradicts itself.
    Invalid(String),
    /// It is intact and uses something that is not implemented.
    Unsupported(String),
    /// Using it would take more than its size allows.
    Excess(String),
}
