//! The blocking embedder of sparse vectors.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::backend;
use crate::error::Result;
use crate::loading::Loading;
use crate::model::{Model, Prompt};
use crate::source::ModelSource;
use crate::sparse::{SparseEmbedded, SparseEmbeddings, SparseOptions, Words};

/// Loads a model of sparse vectors while the caller blocks; from [`SparseEmbedder::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct SparseEmbedderBuilder {
    loading: Loading,
}

ask_for_model!(SparseEmbedderBuilder);

impl SparseEmbedderBuilder {
    /// Loads the model; see [`isovec::SparseEmbedderBuilder::load`](crate::SparseEmbedderBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<SparseEmbedder> {
        let builder = crate::SparseEmbedderBuilder {
            loading: self.loading,
        };
        backend::wait(builder.load()).map(SparseEmbedder::from)
    }
}

/// A loaded model that gives texts weights of words while the caller waits; see
/// [`isovec::SparseEmbedder`](crate::SparseEmbedder), into which it converts. Clones are cheap and share the model.
#[derive(Debug, Clone)]
pub struct SparseEmbedder {
    model: Arc<Model>,
}

impl SparseEmbedder {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`SparseEmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> SparseEmbedderBuilder {
        SparseEmbedderBuilder::new(source)
    }

    /// Embeds texts, with the model's default prompt if it has one.
    ///
    /// # Errors
    /// As [`isovec::SparseEmbedder::embed`](crate::SparseEmbedder::embed).
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<SparseEmbeddings> {
        self.embed_with(texts, &SparseOptions::default())
    }

    /// Embeds texts with options of the call.
    ///
    /// # Errors
    /// As [`isovec::SparseEmbedder::embed_with`](crate::SparseEmbedder::embed_with).
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: &SparseOptions,
    ) -> Result<SparseEmbeddings> {
        let texts = crate::embedder::owned(texts);
        self.model.call_blocking::<Words, _>(&texts, options)
    }

    /// Embeds texts to search with, under the model's query prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<SparseEmbeddings> {
        self.embed_with(texts, &SparseOptions::default().with_prompt(Prompt::Query))
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(&self, text: impl AsRef<str>) -> Result<SparseEmbeddings> {
        self.embed_queries([text])
    }

    /// Embeds texts to search in, under the model's passage prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<SparseEmbeddings> {
        self.embed_with(
            texts,
            &SparseOptions::default().with_prompt(Prompt::Passage),
        )
    }

    /// Embeds any number of texts in flat memory: results in order, one a text; see
    /// [`isovec::SparseEmbedder::embed_stream`](crate::SparseEmbedder::embed_stream).
    pub fn embed_iter<I>(
        &self,
        texts: I,
        options: SparseOptions,
    ) -> impl Iterator<Item = Result<SparseEmbedded>> + use<I>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let embedder = crate::SparseEmbedder::from(self.clone());
        let mut results = Box::pin(embedder.embed_stream(stream::iter(texts), options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(SparseEmbedder);
describe_words!(SparseEmbedder);

impl From<crate::SparseEmbedder> for SparseEmbedder {
    fn from(embedder: crate::SparseEmbedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}

impl From<SparseEmbedder> for crate::SparseEmbedder {
    fn from(embedder: SparseEmbedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}
