//! The blocking embedder of tokens' vectors.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::backend;
use crate::error::Result;
use crate::loading::Loading;
use crate::model::{Model, Prompt};
use crate::multi_vector::{
    MultiVectorEmbedded, MultiVectorEmbeddings, MultiVectorOptions, TokenVectors,
};
use crate::source::ModelSource;

/// Loads a model of late interaction while the caller blocks; from [`MultiVectorEmbedder::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct MultiVectorEmbedderBuilder {
    loading: Loading,
}

ask_for_model!(MultiVectorEmbedderBuilder);

impl MultiVectorEmbedderBuilder {
    /// Loads the model; see [`isovec::MultiVectorEmbedderBuilder::load`](crate::MultiVectorEmbedderBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<MultiVectorEmbedder> {
        let builder = crate::MultiVectorEmbedderBuilder {
            loading: self.loading,
        };
        backend::wait(builder.load()).map(MultiVectorEmbedder::from)
    }
}

/// A loaded model that gives every token a vector while the caller waits; see
/// [`isovec::MultiVectorEmbedder`](crate::MultiVectorEmbedder), into which it converts. Clones are cheap and share the model.
#[derive(Debug, Clone)]
pub struct MultiVectorEmbedder {
    model: Arc<Model>,
}

impl MultiVectorEmbedder {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`MultiVectorEmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> MultiVectorEmbedderBuilder {
        MultiVectorEmbedderBuilder::new(source)
    }

    /// Embeds texts with options of the call.
    ///
    /// # Errors
    /// As [`isovec::MultiVectorEmbedder::embed_with`](crate::MultiVectorEmbedder::embed_with).
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: &MultiVectorOptions,
    ) -> Result<MultiVectorEmbeddings> {
        let texts = options.items(texts);
        self.model.call_blocking::<TokenVectors, _>(&texts, options)
    }

    /// Embeds texts to search with.
    ///
    /// # Errors
    /// As [`embed_with`](Self::embed_with).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<MultiVectorEmbeddings> {
        self.embed_with(
            texts,
            &MultiVectorOptions::default().with_prompt(Prompt::Query),
        )
    }

    /// Embeds a text to search with: a set of one.
    ///
    /// # Errors
    /// As [`embed_with`](Self::embed_with).
    pub fn embed_query(&self, text: impl AsRef<str>) -> Result<MultiVectorEmbeddings> {
        self.embed_queries([text])
    }

    /// Embeds texts to search in.
    ///
    /// # Errors
    /// As [`embed_with`](Self::embed_with).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<MultiVectorEmbeddings> {
        self.embed_with(texts, &MultiVectorOptions::default())
    }

    /// Embeds any number of texts in flat memory: results in order, one a text; see
    /// [`isovec::MultiVectorEmbedder::embed_stream`](crate::MultiVectorEmbedder::embed_stream).
    pub fn embed_iter<I>(
        &self,
        texts: I,
        options: MultiVectorOptions,
    ) -> impl Iterator<Item = Result<MultiVectorEmbedded>> + use<I>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let embedder = crate::MultiVectorEmbedder::from(self.clone());
        let mut results = Box::pin(embedder.embed_stream(stream::iter(texts), options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(MultiVectorEmbedder);
describe_tokens!(MultiVectorEmbedder);

impl From<crate::MultiVectorEmbedder> for MultiVectorEmbedder {
    fn from(embedder: crate::MultiVectorEmbedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}

impl From<MultiVectorEmbedder> for crate::MultiVectorEmbedder {
    fn from(embedder: MultiVectorEmbedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}
