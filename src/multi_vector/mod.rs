//! Texts become a vector for each token, and are compared token by token.

mod embeddings;
mod file;
mod max_sim;
mod reading;

use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;

pub use embeddings::MultiVectorEmbeddings;
pub(crate) use reading::LateReader;

use crate::batcher::DynamicBatcher;
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::rows::Rows;
use crate::model::{self, FlowOptions, LateText, Model, Output, Prompt, Task};
use crate::source::ModelSource;
use crate::stream::{self, OnStreamProgress};
use embeddings::About;

/// A loaded model of late interaction (ColBERT): it gives every token of a text a vector. A query's score with a passage is the sum
/// over the query's tokens of the largest inner product with any token of the passage, so a single matching word counts that a
/// vector of the whole text would lose. Clones are cheap and share the model.
///
/// It loads and runs as an [`Embedder`](crate::Embedder) does: the same sources, configuration, engines, batches, statistics and
/// profile; vectors are cached in memory alone. Models are read as PyLate, Stanford's ColBERT and the `MultiVectorEncoder` of
/// sentence-transformers 6 save them. Queries and passages are read differently: a marker is put into each, queries are filled up to a
/// length with a mask's tokens, punctuation of passages is not compared.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::MultiVectorEmbedder;
///
/// let embedder = MultiVectorEmbedder::load("colbert-ir/colbertv2.0").await?;
/// let passages = ["the cat sleeps by the window", "shares fell after the announcement"];
/// let index = embedder.embed_passages(passages).await?;
/// let query = embedder.embed_query("stock market").await?;
/// for hit in index.search_one(&query, 1)? {
///     println!("{:.2} {}", hit.score, passages[hit.index]);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct MultiVectorEmbedder {
    pub(crate) model: Arc<Model>,
}

/// How texts are embedded, where it differs from the model's settings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MultiVectorOptions {
    /// With [`Prompt::Query`] texts are read as queries, with every other prompt as passages. The prompt itself stands before them,
    /// where the model has one; [`Prompt::Default`] is that of passages.
    pub prompt: Prompt,
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl MultiVectorOptions {
    /// Chooses the prompt before every text, and with [`Prompt::Query`] that they are queries.
    #[must_use]
    pub fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }

    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// A text as it is read under these options.
    fn item(&self, text: impl AsRef<str>) -> LateText {
        LateText {
            text: text.as_ref().to_owned(),
            is_query: self.prompt == Prompt::Query,
        }
    }

    /// Texts as they are read under these options.
    pub(crate) fn items<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Vec<LateText> {
        texts.into_iter().map(|text| self.item(text)).collect()
    }
}

/// The vectors of one text of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MultiVectorEmbedded {
    /// The vectors of its tokens, `[vectors, dim]`, one after another.
    pub vectors: Vec<f32>,
    /// Tokens that the model saw, special ones included.
    pub tokens: u32,
    /// Whether the model saw only a part of the text.
    pub truncated: bool,
}

/// Loads a model of late interaction; from [`MultiVectorEmbedder::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct MultiVectorEmbedderBuilder {
    pub(crate) loading: Loading,
}

ask_for_model!(MultiVectorEmbedderBuilder);

impl MultiVectorEmbedderBuilder {
    /// Loads the model: finds its files, puts its layers for tokens on, and hands it to an engine.
    ///
    /// # Errors
    /// As [`EmbedderBuilder::load`](crate::EmbedderBuilder::load); [`Error::Config`] for a pooling, a normalisation or a
    /// dimension, which are of vectors of whole texts; `UnsupportedModel` for a model whose files describe no late interaction.
    pub fn load(self) -> BoxFuture<'static, Result<MultiVectorEmbedder>> {
        Box::pin(async move {
            let model = model::load(self.loading.asked(), Output::Tokens).await?;
            Ok(MultiVectorEmbedder {
                model: Arc::new(model),
            })
        })
    }
}

impl MultiVectorEmbedder {
    /// Loads a model with the default configuration, as [`Embedder::load`](crate::Embedder::load) does.
    /// [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`MultiVectorEmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> MultiVectorEmbedderBuilder {
        MultiVectorEmbedderBuilder::new(source)
    }

    /// Embeds texts to search in. An empty list gives an empty set.
    ///
    /// # Errors
    /// [`NoTokens`](Error::NoTokens), [`NotFinite`](Error::NotFinite) and [`NotNormalized`](Error::NotNormalized) name the text;
    /// [`Tokenize`](Error::Tokenize) and [`Engine`](Error::Engine) are failures of the tokenizer and the engine.
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        self.embed_with(texts, MultiVectorOptions::default())
    }

    /// Embeds a text to search in: a set of one.
    ///
    /// # Errors
    /// As [`embed_passages`](Self::embed_passages).
    pub fn embed_passage(
        &self,
        text: impl AsRef<str>,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        self.embed_passages([text])
    }

    /// Embeds texts to search with.
    ///
    /// # Errors
    /// As [`embed_passages`](Self::embed_passages).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        self.embed_with(
            texts,
            MultiVectorOptions::default().with_prompt(Prompt::Query),
        )
    }

    /// Embeds a text to search with: a set of one.
    ///
    /// # Errors
    /// As [`embed_passages`](Self::embed_passages).
    pub fn embed_query(
        &self,
        text: impl AsRef<str>,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        self.embed_queries([text])
    }

    /// Embeds texts with options of the call.
    ///
    /// # Errors
    /// As [`embed_passages`](Self::embed_passages); [`Config`](Error::Config) for an unknown prompt name.
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: MultiVectorOptions,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        let texts = options.items(texts);
        Box::pin(Arc::clone(&self.model).call::<TokenVectors, _>(texts, options))
    }

    /// Embeds a stream of any length in flat memory: results in order, one a text, as
    /// [`Embedder::embed_stream`](crate::Embedder::embed_stream) gives vectors.
    pub fn embed_stream<S>(
        &self,
        texts: S,
        options: MultiVectorOptions,
    ) -> impl Stream<Item = Result<MultiVectorEmbedded>> + use<S>
    where
        S: Stream,
        S::Item: AsRef<str>,
    {
        let reading = options.clone();
        let texts = texts.map(move |text| Ok::<_, Error>(reading.item(text)));
        stream::rows::<TokenVectors, _, _, _>(Arc::clone(&self.model), texts, options, None)
    }

    /// The same for a stream that may fail itself, as [`Embedder::try_embed_stream`](crate::Embedder::try_embed_stream) takes it.
    /// `on_progress` is told after every window how far the stream has come.
    pub fn try_embed_stream<S, T, E, P>(
        &self,
        texts: S,
        options: MultiVectorOptions,
        on_progress: P,
    ) -> impl Stream<Item = Result<MultiVectorEmbedded, E>> + use<S, T, E, P>
    where
        P: OnStreamProgress + 'static,
        S: Stream<Item = Result<T, E>>,
        T: AsRef<str>,
        E: From<Error>,
    {
        let on_progress: Arc<dyn OnStreamProgress> = Arc::new(on_progress);
        let model = Arc::clone(&self.model);
        let reading = options.clone();
        let texts = texts.map_ok(move |text| reading.item(text));
        stream::rows::<TokenVectors, _, _, _>(model, texts, options, Some(on_progress))
    }

    /// A batcher that joins the calls of many tasks, with a queue of its own.
    pub fn batcher(&self) -> DynamicBatcher<Self> {
        DynamicBatcher::over(Arc::clone(&self.model))
    }
}

impl DynamicBatcher<MultiVectorEmbedder> {
    /// Embeds texts together with those of other callers; see [`MultiVectorEmbedder::embed_with`]. Calls with different options run
    /// together all the same.
    ///
    /// # Errors
    /// As there, and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: MultiVectorOptions,
    ) -> BoxFuture<'static, Result<MultiVectorEmbeddings>> {
        self.call::<TokenVectors, _>(options.items(texts), options)
    }
}

/// Texts become a vector for each token.
#[derive(Debug)]
pub(crate) struct TokenVectors;

impl Task for TokenVectors {
    type Options = MultiVectorOptions;
    type Set = MultiVectorEmbeddings;
    type Row = MultiVectorEmbedded;

    fn of(model: &Model, _: &MultiVectorOptions) -> Result<Self> {
        model.late().map(|_| Self)
    }

    fn flow(options: &MultiVectorOptions) -> FlowOptions {
        FlowOptions {
            prompt: match &options.prompt {
                Prompt::Default => Prompt::Passage,
                chosen => chosen.clone(),
            },
            cancel: options.cancel.clone(),
        }
    }

    fn set(&self, model: &Model, rows: Rows) -> Result<MultiVectorEmbeddings> {
        let Rows {
            packed,
            token_counts,
            truncated,
            prompt,
            ..
        } = rows;
        let about = About {
            dim: model.dim,
            token_counts,
            truncated,
            fingerprint: Arc::clone(&model.fingerprint),
            prompt,
            model: model.name.clone(),
        };
        Ok(MultiVectorEmbeddings::of(packed, about))
    }

    fn rows(set: MultiVectorEmbeddings) -> impl Iterator<Item = MultiVectorEmbedded> {
        (0..set.len()).map(move |row| MultiVectorEmbedded {
            vectors: set.get(row).map(|row| row.into_owned()).unwrap_or_default(),
            tokens: set.token_counts()[row],
            truncated: set.truncated()[row],
        })
    }

    fn tokens(row: &MultiVectorEmbedded) -> u32 {
        row.tokens
    }
}

/// The set of no texts, as these options would have it.
pub(crate) fn empty_set(
    model: &Model,
    options: &MultiVectorOptions,
) -> Result<MultiVectorEmbeddings> {
    let rows = model.no_rows(&TokenVectors::flow(options).prompt)?;
    TokenVectors::of(model, options)?.set(model, rows)
}

describe_model!(MultiVectorEmbedder);
describe_tokens!(MultiVectorEmbedder);
