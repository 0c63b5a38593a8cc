//! Vectors of the same texts, before and after a change that makes others of them by design.

use isovec::optimize::Quality;
use isovec::{EmbedOptions, Embedder, Embeddings, Result};

use super::trial::Trial;

/// Compares the vectors of a candidate with those that the original made of the same texts.
pub(crate) async fn compared(
    before: &Embeddings,
    candidate: &Embedder,
    texts: &[String],
    trial: &Trial,
) -> Result<Quality> {
    let after = embed(candidate, texts, trial).await?;
    Ok(Quality::of(before, &after))
}

/// The vectors of texts, unless the trial is cancelled.
pub(crate) async fn embed(
    embedder: &Embedder,
    texts: &[String],
    trial: &Trial,
) -> Result<Embeddings> {
    let mut options = EmbedOptions::default();
    options.cancel.clone_from(&trial.cancel);
    embedder.embed_with(texts, options).await
}
