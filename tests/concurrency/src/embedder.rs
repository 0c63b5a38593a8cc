//! The embedder under a batcher.

use std::sync::Arc;

use crate::model::Model;

/// A handle on a model.
#[derive(Debug)]
pub struct Embedder {
    /// The model.
    pub model: Arc<Model>,
}

pub(crate) fn owned<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<String> {
    texts
        .into_iter()
        .map(|text| text.as_ref().to_owned())
        .collect()
}
