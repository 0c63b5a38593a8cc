//! The result of a call.

/// Vectors, row after row.
#[derive(Debug, PartialEq)]
pub struct Embeddings(pub Vec<f32>);

impl Embeddings {
    pub(crate) fn into_vec(self) -> Vec<f32> {
        self.0
    }
}
