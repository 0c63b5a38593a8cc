//! What every result says of the texts that it is about.

use isovec::{Classifications, Embeddings, MultiVectorEmbeddings, Ranked, SparseEmbeddings};

/// How much of each text the model saw, in the order of the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Texts, or pairs of texts.
    pub(crate) texts: u64,
    /// Their tokens, special ones included.
    pub(crate) tokens: u64,
    /// The places of those of which the model saw only a part.
    pub(crate) truncated: Vec<usize>,
}

impl Seen {
    fn new(tokens: &[u32], truncated: &[bool]) -> Self {
        let marks = truncated.iter().enumerate();
        Self {
            texts: tokens.len() as u64,
            tokens: tokens.iter().map(|&count| u64::from(count)).sum(),
            truncated: marks
                .filter(|(_, truncated)| **truncated)
                .map(|(at, _)| at)
                .collect(),
        }
    }
}

/// A result of the SDK.
pub(crate) trait Counted {
    fn seen(&self) -> Seen;
}

impl Counted for Embeddings {
    fn seen(&self) -> Seen {
        Seen::new(self.token_counts(), self.truncated())
    }
}

impl Counted for Classifications {
    fn seen(&self) -> Seen {
        Seen::new(self.token_counts(), self.truncated())
    }
}

impl Counted for SparseEmbeddings {
    fn seen(&self) -> Seen {
        Seen::new(self.token_counts(), self.truncated())
    }
}

impl Counted for MultiVectorEmbeddings {
    fn seen(&self) -> Seen {
        Seen::new(self.token_counts(), self.truncated())
    }
}

/// A ranking of all documents.
impl Counted for Vec<Ranked> {
    fn seen(&self) -> Seen {
        let mut truncated: Vec<usize> = self
            .iter()
            .filter(|document| document.truncated)
            .map(|document| document.index)
            .collect();
        truncated.sort_unstable();
        Seen {
            texts: self.len() as u64,
            tokens: self.iter().map(|document| u64::from(document.tokens)).sum(),
            truncated,
        }
    }
}
