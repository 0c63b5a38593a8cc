//! What computes.

use serde_json::Value;

/// Turns texts into vectors. A job knows nothing else of a model.
pub trait Compute: Send + Sync {
    /// Everything that decides the vectors' values. An output is made under one fingerprint; a run with another is refused.
    fn fingerprint(&self) -> Value;

    /// Components of a vector.
    fn dim(&self) -> usize;

    /// The vectors of texts, one after another: `[texts.len(), dim]`.
    ///
    /// # Errors
    /// [`Refusal`] says whether one of the texts is at fault.
    fn embed(&self, texts: &[&str]) -> Result<Vec<f32>, Refusal>;

    /// Names and values for the metadata of the outputs' schemas.
    fn metadata(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// One of the texts can have no vector. The others are tried without it.
    Text {
        /// Its place among the texts.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Something else, which may pass. It is tried again.
    Failed(String),
    /// The caller asked for an end.
    Cancelled,
}
