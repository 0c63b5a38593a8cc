//! The async handle that users hold.

use std::sync::Arc;

use isovec_engine::maybe_send::BoxFuture;

use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::loading::EmbedderBuilder;
use crate::model::{EmbedOptions, Model, Prompt, TokenIds, Vectors};
use crate::source::ModelSource;

/// A loaded model that turns texts into vectors. Clones are cheap and share the model.
///
/// The futures own what they need: they are `'static`, natively `Send`, run on any executor, and
/// polling them never computes natively. Dropping one cancels its work. No runtime is needed, and
/// none is started; callers without one find the same methods in
/// [`blocking`](crate::blocking::Embedder).
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{Embedder, models};
///
/// let embedder = Embedder::load(models::ALL_MINILM_L6_V2).await?;
/// let passages = ["the cat sleeps by the window", "shares fell after the announcement", "rain is expected tomorrow"];
/// let index = embedder.embed_passages(passages).await?;
/// let query = embedder.embed_query("what will the weather be like?").await?;
/// for hit in index.search_one(&query, 1)? {
///     println!("{:.3} {}", hit.score, passages[hit.index]); // 0.598 rain is expected tomorrow
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Embedder {
    pub(crate) model: Arc<Model>,
}

impl Embedder {
    /// Loads a model with the default configuration: finds its files (downloading them where
    /// `source` is a model id that is not in the cache), puts the pooling head on, and hands it to
    /// an engine. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`EmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, dimension, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> EmbedderBuilder {
        EmbedderBuilder::new(source)
    }

    /// Embeds texts: `[n, dim]` in their order, with the model's default prompt if it has one.
    /// An empty list gives an empty set.
    ///
    /// # Errors
    /// [`NoTokens`](crate::Error::NoTokens), [`NotFinite`](crate::Error::NotFinite) and
    /// [`NotNormalized`](crate::Error::NotNormalized) name the text; [`Tokenize`](crate::Error::Tokenize) and
    /// [`Engine`](crate::Error::Engine) are failures of the tokenizer and the engine.
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(texts, EmbedOptions::default())
    }

    /// Embeds texts with options of the call: a prompt, a dimension, unit length, a cancellation.
    ///
    /// # Errors
    /// As [`embed`](Self::embed); [`Config`](crate::Error::Config) for an unknown prompt name, and for a dimension or
    /// a length that the loaded model cannot give; [`NoDirection`](crate::Error::NoDirection) names a text whose kept
    /// components are all 0.
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let texts = owned(texts);
        Box::pin(Arc::clone(&self.model).call::<Vectors, _>(texts, options))
    }

    /// The same of texts that are there as the ids that this model's tokenizer gives them, without special tokens. The
    /// special tokens are put around them, and what is too long is cut, as for a text. The ids of a prompt stand before
    /// them: a tokenizer that joins the prompt's last word with the text's first would have given both others.
    ///
    /// # Errors
    /// As [`embed_with`](Self::embed_with); [`Tokenize`](crate::Error::Tokenize) also for an id beyond the vocabulary.
    pub fn embed_tokens(
        &self,
        texts: impl IntoIterator<Item = Vec<u32>>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let texts: Vec<TokenIds> = texts.into_iter().map(TokenIds).collect();
        Box::pin(Arc::clone(&self.model).call::<Vectors, _>(texts, options))
    }

    /// The vector of one text.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_one(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Vec<f32>>> {
        let embedding = self.embed([text]);
        Box::pin(async move { Ok(embedding.await?.into_vec()) })
    }

    /// Embeds texts to search with, under the model's query prompt. For one, see
    /// [`embed_query`](Self::embed_query).
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(texts, EmbedOptions::default().with_prompt(Prompt::Query))
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_queries([text])
    }

    /// Embeds a text to search in, under the model's passage prompt: a set of one. For many, see
    /// [`embed_passages`](Self::embed_passages).
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passage(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_passages([text])
    }

    /// Embeds texts to search in, under the model's passage prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(texts, EmbedOptions::default().with_prompt(Prompt::Passage))
    }
}

pub(crate) fn owned<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<String> {
    texts
        .into_iter()
        .map(|text| text.as_ref().to_owned())
        .collect()
}

describe_model!(Embedder);
describe_vectors!(Embedder);
