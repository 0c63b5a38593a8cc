//! Gives texts labels with scores.

mod classifications;
mod labels;

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;

pub use classifications::{Classifications, Classified, Label};
pub(crate) use labels::Labels;
pub use labels::Scores;

use crate::batcher::DynamicBatcher;
use crate::embedder::owned;
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::rows::Rows;
use crate::model::{self, FlowOptions, Model, Output, Pair, Prompt, Task};
use crate::source::ModelSource;
use crate::stream::{self, OnStreamProgress};

/// A loaded model that gives texts labels: sentiment, topic, language, or any others that it was trained with. Clones
/// are cheap and share the model.
///
/// It loads and runs as an [`Embedder`](crate::Embedder) does: the same sources, configuration, engines, batches, cache,
/// statistics and profile. Models of a class that ends in `ForSequenceClassification` are read from safetensors (BERT, RoBERTa,
/// XLM-R, CamemBERT, MPNet, DistilBERT, ModernBERT, GTE, JinaBERT, DeBERTa-v2), and others from ONNX files that give `logits`.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::Classifier;
///
/// let classifier = Classifier::load("models/sentiment").await?;
/// let said = classifier.classify(["what a wonderful day", "the soup was cold"]).await?;
/// for text in 0..said.len() {
///     println!("{:?}", said.best(text));
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Classifier {
    pub(crate) model: Arc<Model>,
}

/// Options of a call that override the model's files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ClassifyOptions {
    /// The kind of scores. `None`: the kind that `config.json` defines.
    pub scores: Option<Scores>,
    /// The prompt of the model, which stands before each text, or before the first of each pair.
    pub prompt: Prompt,
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl ClassifyOptions {
    /// Chooses the kind of scores.
    #[must_use]
    pub fn with_scores(mut self, scores: Scores) -> Self {
        self.scores = Some(scores);
        self
    }

    /// Chooses the prompt.
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
}

/// Loads a classifier; from [`Classifier::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct ClassifierBuilder {
    pub(crate) loading: Loading,
}

ask_for_model!(ClassifierBuilder);

impl ClassifierBuilder {
    /// Loads the model: finds its files, leaves the logits as its one output, and hands it to an engine.
    ///
    /// # Errors
    /// As [`EmbedderBuilder::load`](crate::EmbedderBuilder::load); [`Error::Config`] for a pooling, a normalisation or a
    /// dimension, which labels do not have; `UnsupportedModel` for a model that gives no logits.
    pub fn load(self) -> BoxFuture<'static, Result<Classifier>> {
        Box::pin(async move {
            let model = model::load(self.loading.asked(), Output::Labels).await?;
            Ok(Classifier {
                model: Arc::new(model),
            })
        })
    }
}

impl Classifier {
    /// Loads a model with the default configuration, as [`Embedder::load`](crate::Embedder::load) does.
    /// [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`ClassifierBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> ClassifierBuilder {
        ClassifierBuilder::new(source)
    }

    /// The names of the labels, in the order of [`Classifications::scores`].
    pub fn labels(&self) -> &[String] {
        self.model.label_names()
    }

    /// Classifies texts, in their order. An empty list gives an empty set.
    ///
    /// # Errors
    /// [`NoTokens`](Error::NoTokens) and [`NotFinite`](Error::NotFinite) name the text; [`Tokenize`](Error::Tokenize)
    /// and [`Engine`](Error::Engine) for failures of the tokenizer and the engine.
    pub fn classify<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.classify_with(texts, ClassifyOptions::default())
    }

    /// Classifies texts with options of the call.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        Box::pin(Arc::clone(&self.model).call::<Labelling, _>(owned(texts), options))
    }

    /// Classifies pairs of texts that the model reads together, as models of paraphrase, entailment and relevance want
    /// them: `[CLS] first [SEP] second [SEP]`, or whatever the tokenizer's files say. Where a pair is too long, its longer
    /// text is cut first.
    ///
    /// ```no_run
    /// # async fn example() -> isovec::Result<()> {
    /// use isovec::Classifier;
    ///
    /// let classifier = Classifier::load("models/entailment").await?;
    /// let pairs = [("a dog runs in the snow", "an animal is outside"), ("a dog runs", "the dog sleeps")];
    /// println!("{:?}", classifier.classify_pairs(pairs).await?.best(0));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`classify`](Self::classify), with the pair's place for the text's.
    pub fn classify_pairs<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.classify_pairs_with(pairs, ClassifyOptions::default())
    }

    /// Classifies pairs of texts with options of the call.
    ///
    /// # Errors
    /// As [`classify_pairs`](Self::classify_pairs).
    pub fn classify_pairs_with<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        Box::pin(Arc::clone(&self.model).call::<Labelling, _>(Pair::all(pairs), options))
    }

    /// The labels of one text, the highest score first.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_one(&self, text: impl AsRef<str>) -> BoxFuture<'static, Result<Vec<Label>>> {
        let said = self.classify([text]);
        Box::pin(async move { Ok(said.await?.ranked(0).unwrap_or_default()) })
    }

    /// Classifies a stream of any length in flat memory: results in order, one a text, as
    /// [`Embedder::embed_stream`](crate::Embedder::embed_stream) gives vectors.
    pub fn classify_stream<S>(
        &self,
        texts: S,
        options: ClassifyOptions,
    ) -> impl Stream<Item = Result<Classified>> + use<S>
    where
        S: Stream,
        S::Item: AsRef<str>,
    {
        let texts = texts.map(Ok::<_, Error>);
        stream::rows::<Labelling, _, _, _>(Arc::clone(&self.model), texts, options, None)
    }

    /// The same for a stream that may fail itself, as
    /// [`Embedder::try_embed_stream`](crate::Embedder::try_embed_stream) takes it. `on_progress` is told after every window how
    /// far the stream has come.
    pub fn try_classify_stream<S, T, E, P>(
        &self,
        texts: S,
        options: ClassifyOptions,
        on_progress: P,
    ) -> impl Stream<Item = Result<Classified, E>> + use<S, T, E, P>
    where
        P: OnStreamProgress + 'static,
        S: Stream<Item = Result<T, E>>,
        T: AsRef<str>,
        E: From<Error>,
    {
        let on_progress: Arc<dyn OnStreamProgress> = Arc::new(on_progress);
        let model = Arc::clone(&self.model);
        stream::rows::<Labelling, _, _, _>(model, texts, options, Some(on_progress))
    }

    /// A batcher that joins the calls of many tasks, with a queue of its own.
    pub fn batcher(&self) -> DynamicBatcher<Self> {
        DynamicBatcher::over(Arc::clone(&self.model))
    }
}

impl DynamicBatcher<Classifier> {
    /// Classifies texts together with those of other callers, in their order.
    ///
    /// # Errors
    /// As [`Classifier::classify`], and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn classify<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.classify_with(texts, ClassifyOptions::default())
    }

    /// The same with options of the call. Calls with different options run together all the same.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.call::<Labelling, _>(owned(texts), options)
    }

    /// Classifies pairs of texts together with the texts and pairs of other callers; see [`Classifier::classify_pairs`].
    ///
    /// # Errors
    /// As there, and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn classify_pairs<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.classify_pairs_with(pairs, ClassifyOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`classify_pairs`](Self::classify_pairs).
    pub fn classify_pairs_with<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.call::<Labelling, _>(Pair::all(pairs), options)
    }
}

/// Items become scores of labels.
#[derive(Debug)]
pub(crate) struct Labelling {
    names: Arc<[String]>,
    scores: Scores,
}

impl Task for Labelling {
    type Options = ClassifyOptions;
    type Set = Classifications;
    type Row = Classified;

    fn of(model: &Model, options: &ClassifyOptions) -> Result<Self> {
        let labels = model.labels.as_ref().ok_or_else(|| {
            Error::Config(vec![
                "this model was loaded for vectors, and not for labels".into(),
            ])
        })?;
        Ok(Self {
            names: Arc::clone(&labels.names),
            scores: options.scores.unwrap_or(labels.scores),
        })
    }

    fn flow(options: &ClassifyOptions) -> FlowOptions {
        FlowOptions {
            prompt: options.prompt.clone(),
            cancel: options.cancel.clone(),
        }
    }

    fn set(&self, _: &Model, rows: Rows) -> Result<Classifications> {
        let Rows {
            mut values,
            token_counts,
            truncated,
            ..
        } = rows;
        for row in values.chunks_exact_mut(self.names.len().max(1)) {
            self.scores.apply(row);
        }
        Ok(Classifications {
            names: Arc::clone(&self.names),
            scores: values,
            token_counts,
            truncated,
        })
    }

    fn rows(set: Classifications) -> impl Iterator<Item = Classified> {
        (0..set.len()).map(move |text| Classified {
            labels: set.ranked(text).unwrap_or_default(),
            tokens: set.token_counts[text],
            truncated: set.truncated[text],
        })
    }

    fn tokens(row: &Classified) -> u32 {
        row.tokens
    }
}

describe_model!(Classifier);
