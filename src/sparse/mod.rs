//! Texts become weights of words.

mod bm25;
mod embeddings;
mod file;
mod vector;

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;
use serde::Serialize;

pub use bm25::Bm25;
pub use embeddings::SparseEmbeddings;
pub use vector::{SparseRow, SparseVector};

use crate::batcher::DynamicBatcher;
use crate::embedder::owned;
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::rows::Rows;
use crate::model::{self, FlowOptions, Model, Output, Prompt, Task};
use crate::source::ModelSource;
use crate::stream::{self, OnStreamProgress};
use embeddings::About;

/// A loaded model that gives a text a weight for every word that it speaks of, and for words that belong to them: a SPLADE model.
/// A search by such vectors finds exact words, as a search engine does, and also what was said in other words. Clones are cheap and
/// share the model.
///
/// It loads and runs as an [`Embedder`](crate::Embedder) does: the same sources, configuration, engines, batches, statistics and
/// profile; vectors are cached in memory alone. Models are read from safetensors of the classes `BertForMaskedLM`,
/// `DistilBertForMaskedLM`, `RobertaForMaskedLM`, `XLMRobertaForMaskedLM`, `CamembertForMaskedLM`, `MPNetForMaskedLM`,
/// `ModernBertForMaskedLM` and `NewForMaskedLM`, and from ONNX files that give a number for each token and word. The step
/// `SpladePooling` in `modules.json` says how words are weighed; without it, by the maximum. BGE-M3 weighs the tokens of a text itself,
/// by the layer in its `sparse_linear.pt`. Where a `Router` gives queries the step `SparseStaticEmbedding`, no engine computes them:
/// their tokens have the weights of its table ([`Prompt::Query`] says that a text is one, and so does the name `query`).
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::SparseEmbedder;
///
/// let embedder = SparseEmbedder::load("naver/splade-cocondenser-ensembledistil").await?;
/// let passages = ["the cat sleeps by the window", "shares fell after the announcement"];
/// let index = embedder.embed_passages(passages).await?;
/// let query = embedder.embed_query("stock market").await?;
/// for hit in index.search_one(&query, 1)? {
///     println!("{:.2} {}", hit.score, passages[hit.index]);
/// }
/// for word in embedder.words(query.get(0).unwrap(), 5)? {
///     println!("{:.2} {}", word.weight, word.token);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SparseEmbedder {
    pub(crate) model: Arc<Model>,
}

/// How texts are embedded, where it differs from the model's settings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SparseOptions {
    /// The prompt before every text.
    pub prompt: Prompt,
    /// Keep only so many of the largest weights of each vector. `None`: all.
    pub top_k: Option<usize>,
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl SparseOptions {
    /// Chooses the prompt before every text.
    #[must_use]
    pub fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }

    /// Keeps the `top_k` largest weights of each vector.
    #[must_use]
    pub fn with_top_k(mut self, top_k: usize) -> Self {
        self.top_k = Some(top_k);
        self
    }

    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }
}

/// The sparse vector of one text of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SparseEmbedded {
    /// The vector.
    pub vector: SparseVector,
    /// Tokens that the model saw, special ones included.
    pub tokens: u32,
    /// Whether the model saw only a part of the text.
    pub truncated: bool,
}

/// A word and its weight.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WordWeight {
    /// The token's id.
    pub index: u32,
    /// The token, as the tokenizer's file writes it.
    pub token: String,
    /// Its weight.
    pub weight: f32,
}

/// Loads a model of sparse vectors; from [`SparseEmbedder::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct SparseEmbedderBuilder {
    pub(crate) loading: Loading,
}

ask_for_model!(SparseEmbedderBuilder);

impl SparseEmbedderBuilder {
    /// Loads the model: finds its files, pools the numbers of its words, and hands it to an engine.
    ///
    /// # Errors
    /// As [`EmbedderBuilder::load`](crate::EmbedderBuilder::load); [`Error::Config`] for a pooling, a normalisation or a
    /// dimension, which weights of words do not have; `UnsupportedModel` for a model that gives words no numbers.
    pub fn load(self) -> BoxFuture<'static, Result<SparseEmbedder>> {
        Box::pin(async move {
            let model = model::load(self.loading.asked(), Output::Sparse).await?;
            Ok(SparseEmbedder {
                model: Arc::new(model),
            })
        })
    }
}

impl SparseEmbedder {
    /// Loads a model with the default configuration, as [`Embedder::load`](crate::Embedder::load) does.
    /// [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`SparseEmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> SparseEmbedderBuilder {
        SparseEmbedderBuilder::new(source)
    }

    /// Embeds texts, with the model's default prompt if it has one. An empty list gives an empty set.
    ///
    /// # Errors
    /// [`NoTokens`](Error::NoTokens) and [`NotFinite`](Error::NotFinite) name the text; [`Tokenize`](Error::Tokenize) and
    /// [`Engine`](Error::Engine) are failures of the tokenizer and the engine.
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.embed_with(texts, SparseOptions::default())
    }

    /// Embeds texts with options of the call.
    ///
    /// # Errors
    /// As [`embed`](Self::embed); [`Config`](Error::Config) for an unknown prompt name, and for a `top_k` of 0.
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: SparseOptions,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        let texts = owned(texts);
        Box::pin(Arc::clone(&self.model).call::<Words, _>(texts, options))
    }

    /// Embeds texts to search with, under the model's query prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.embed_with(texts, SparseOptions::default().with_prompt(Prompt::Query))
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(
        &self,
        text: impl AsRef<str>,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.embed_queries([text])
    }

    /// Embeds texts to search in, under the model's passage prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.embed_with(texts, SparseOptions::default().with_prompt(Prompt::Passage))
    }

    /// Embeds a text to search in, under the model's passage prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passage(
        &self,
        text: impl AsRef<str>,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.embed_passages([text])
    }

    /// Embeds a stream of any length in flat memory: results in order, one a text, as
    /// [`Embedder::embed_stream`](crate::Embedder::embed_stream) gives vectors.
    pub fn embed_stream<S>(
        &self,
        texts: S,
        options: SparseOptions,
    ) -> impl Stream<Item = Result<SparseEmbedded>> + use<S>
    where
        S: Stream,
        S::Item: AsRef<str>,
    {
        let texts = texts.map(Ok::<_, Error>);
        stream::rows::<Words, _, _, _>(Arc::clone(&self.model), texts, options, None)
    }

    /// The same for a stream that may fail itself, as [`Embedder::try_embed_stream`](crate::Embedder::try_embed_stream) takes it.
    /// `on_progress` is told after every window how far the stream has come.
    pub fn try_embed_stream<S, T, E, P>(
        &self,
        texts: S,
        options: SparseOptions,
        on_progress: P,
    ) -> impl Stream<Item = Result<SparseEmbedded, E>> + use<S, T, E, P>
    where
        P: OnStreamProgress + 'static,
        S: Stream<Item = Result<T, E>>,
        T: AsRef<str>,
        E: From<Error>,
    {
        let on_progress: Arc<dyn OnStreamProgress> = Arc::new(on_progress);
        let model = Arc::clone(&self.model);
        stream::rows::<Words, _, _, _>(model, texts, options, Some(on_progress))
    }

    /// A batcher that joins the calls of many tasks, with a queue of its own.
    pub fn batcher(&self) -> DynamicBatcher<Self> {
        DynamicBatcher::over(Arc::clone(&self.model))
    }
}

impl DynamicBatcher<SparseEmbedder> {
    /// Embeds texts together with those of other callers; see [`SparseEmbedder::embed`].
    ///
    /// # Errors
    /// As there, and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn embed<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.embed_with(texts, SparseOptions::default())
    }

    /// The same with options of the call. Calls with different options run together all the same.
    ///
    /// # Errors
    /// As [`embed`](Self::embed), and as [`SparseEmbedder::embed_with`].
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: SparseOptions,
    ) -> BoxFuture<'static, Result<SparseEmbeddings>> {
        self.call::<Words, _>(owned(texts), options)
    }
}

/// Texts become weights of words.
#[derive(Debug)]
pub(crate) struct Words {
    top_k: Option<usize>,
}

impl Task for Words {
    type Options = SparseOptions;
    type Set = SparseEmbeddings;
    type Row = SparseEmbedded;

    fn of(model: &Model, options: &SparseOptions) -> Result<Self> {
        let mut faults = Vec::new();
        if model.weighting.is_none() {
            faults.push("this model was not loaded for sparse vectors".into());
        }
        if options.top_k == Some(0) {
            faults
                .push("the option top_k is 0, which leaves no weight; leave it out for all".into());
        }
        match faults.is_empty() {
            true => Ok(Self {
                top_k: options.top_k,
            }),
            false => Err(Error::Config(faults)),
        }
    }

    fn flow(options: &SparseOptions) -> FlowOptions {
        FlowOptions {
            prompt: options.prompt.clone(),
            cancel: options.cancel.clone(),
        }
    }

    fn set(&self, model: &Model, rows: Rows) -> Result<SparseEmbeddings> {
        let Rows {
            packed,
            token_counts,
            truncated,
            prompt,
            ..
        } = rows;
        let about = About {
            vocabulary_size: model.vocabulary_size(),
            token_counts,
            truncated,
            fingerprint: Arc::clone(&model.fingerprint),
            prompt,
            model: model.name.clone(),
        };
        let rows = packed.iter().map(|row| {
            let (indices, values) = row.split_at(row.len() / 2);
            (bytemuck::cast_slice(indices), values)
        });
        let set = SparseEmbeddings::of(rows, about);
        Ok(match self.top_k {
            Some(most) => set.top_k(most),
            None => set,
        })
    }

    fn rows(set: SparseEmbeddings) -> impl Iterator<Item = SparseEmbedded> {
        (0..set.len()).map(move |row| SparseEmbedded {
            vector: set.get(row).map(|row| row.to_vector()).unwrap_or_default(),
            tokens: set.token_counts()[row],
            truncated: set.truncated()[row],
        })
    }

    fn tokens(row: &SparseEmbedded) -> u32 {
        row.tokens
    }
}

impl Model {
    /// The heaviest words of a vector, with their tokens.
    pub(crate) fn words(&self, vector: SparseRow<'_>, most: usize) -> Result<Vec<WordWeight>> {
        let reader = self.reader.texts()?;
        let mut words: Vec<(u32, f32)> = vector.iter().collect();
        let size = self.vocabulary_size();
        if let Some((index, _)) = words.iter().find(|(index, _)| *index as usize >= size) {
            return Err(Error::InvalidEmbeddings {
                origin: "the sparse vector".into(),
                detail: format!("it has the index {index}, and this model has {size} words"),
            });
        }
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        words.truncate(most);
        let mut tokens = reader
            .tokenizer
            .words(words.iter().map(|&(index, _)| index));
        let named = words.into_iter().map(|(index, weight)| WordWeight {
            index,
            token: tokens.remove(&index).unwrap_or_default(),
            weight,
        });
        Ok(named.collect())
    }
}

describe_model!(SparseEmbedder);
describe_words!(SparseEmbedder);
