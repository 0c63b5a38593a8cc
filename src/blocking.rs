//! The same for callers who wait: no executor, and the model computes on the calling thread.
//!
//! ```no_run
//! use isovec::blocking::Embedder;
//! use isovec::{EmbeddingConfig, models};
//!
//! let embedder = Embedder::load(models::ALL_MINILM_L6_V2, EmbeddingConfig::default())?;
//! let vectors = embedder.embed(["cats purr", "stocks fell"])?;
//! assert_eq!((vectors.len(), vectors.dim()), (2, 384));
//! # Ok::<(), isovec::Error>(())
//! ```

use std::path::Path;
use std::sync::Arc;

use crate::backend;
use crate::config::EmbeddingConfig;
use crate::embedder::owned;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::export::{ExportOptions, Exported};
use crate::model::rows::Rows;
use crate::model::{EmbedOptions, LoadOptions, Model, OwnCancel, Prompt, WINDOW};
use crate::source::ModelSource;

/// A loaded model that turns texts into vectors while the caller waits. Clones are cheap and share
/// the model, and so does the async handle that it converts into.
#[derive(Debug, Clone)]
pub struct Embedder {
    model: Arc<Model>,
}

impl Embedder {
    /// Loads a model; see [`isovec::Embedder::load`](crate::Embedder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(source: impl Into<ModelSource>, config: EmbeddingConfig) -> Result<Self> {
        Self::load_with(source, config, LoadOptions::default())
    }

    /// The same, reporting progress and cancellable from another thread.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with(
        source: impl Into<ModelSource>,
        config: EmbeddingConfig,
        options: LoadOptions,
    ) -> Result<Self> {
        backend::wait(crate::Embedder::load_with(source, config, options)).map(Self::from)
    }

    /// Embeds texts: `[n, dim]` in their order, with the model's default prompt if it has one.
    /// An empty list gives an empty set.
    ///
    /// # Errors
    /// As [`isovec::Embedder::embed`](crate::Embedder::embed).
    pub fn embed<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Result<Embeddings> {
        self.embed_with(texts, EmbedOptions::default())
    }

    /// Embeds texts with a prompt or a cancellation of the caller's.
    ///
    /// # Errors
    /// As [`isovec::Embedder::embed_with`](crate::Embedder::embed_with).
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: EmbedOptions,
    ) -> Result<Embeddings> {
        self.model.embed_blocking(&owned(texts), &options)
    }

    /// The vector of one text.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_one(&self, text: impl AsRef<str>) -> Result<Vec<f32>> {
        Ok(self.embed([text])?.into_vec())
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(&self, text: impl AsRef<str>) -> Result<Embeddings> {
        self.embed_with([text], EmbedOptions::default().with_prompt(Prompt::Query))
    }

    /// Embeds a text to search in, under the model's passage prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passage(&self, text: impl AsRef<str>) -> Result<Embeddings> {
        self.embed_passages([text])
    }

    /// Embeds texts to search in, under the model's passage prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Embeddings> {
        self.embed_with(texts, EmbedOptions::default().with_prompt(Prompt::Passage))
    }
}

describe_model!(Embedder);

impl Model {
    /// Embeds on the calling thread, which waits.
    pub(crate) fn embed_blocking(
        &self,
        texts: &[String],
        options: &EmbedOptions,
    ) -> Result<Embeddings> {
        let (prefix, prompt) = self.prompts.resolve(&options.prompt)?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        let mut rows = Rows::new(texts.len(), self.dim, self.normalized)?;
        for (index, window) in texts.chunks(WINDOW).enumerate() {
            let start = index * WINDOW;
            let encode = |texts: &[String]| self.encode(texts, &prefix);
            let encodings = backend::in_slices_blocking("tokenising", window, &cancel.0, encode)?;
            rows.note(start, &encodings)?;
            let plan = self.plan(&encodings);
            for places in (0..).map_while(|index| plan.batch(index)) {
                cancel.0.check()?;
                let batch = self.feed.batch(&*self.engine, &encodings, places)?;
                let output = self.engine.run_blocking(batch, &cancel.0)?;
                rows.place(start, places, output)?;
            }
        }
        self.finish(rows, prompt)
    }
}

/// Writes a model into a folder; see [`isovec::export`](crate::export()).
///
/// # Errors
/// As there.
pub fn export(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    options: ExportOptions,
) -> Result<Exported> {
    backend::wait(crate::export(source, folder, config, options))
}

impl From<crate::Embedder> for Embedder {
    fn from(embedder: crate::Embedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}

impl From<Embedder> for crate::Embedder {
    fn from(embedder: Embedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}
