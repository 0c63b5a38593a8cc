//! The faults of a batch.

use std::fmt;

/// A batch that does not fit the model's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelError {
    /// An id is no row of its table.
    Id {
        /// Which of the lookups, from 0.
        lookup: usize,
        /// Which token of the batch, from 0.
        token: usize,
        /// The id.
        id: i64,
        /// The rows of the table.
        rows: usize,
    },
    /// A text has more tokens than there are positions.
    TooLong {
        /// The tokens of the text.
        tokens: usize,
        /// The positions of the table.
        positions: usize,
    },
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id {
                lookup,
                token,
                id,
                rows,
            } => write!(
                f,
                "id {id} of token {token} is not in table {lookup} of {rows} rows; the tokenizer \
                 and the model do not belong together"
            ),
            Self::TooLong { tokens, positions } => write!(
                f,
                "a text of {tokens} tokens is longer than the model's {positions} positions; \
                 truncate it"
            ),
        }
    }
}

impl std::error::Error for KernelError {}
