//! Puts documents in the order of their relevance to a query.

pub(crate) mod activation;
pub(crate) mod chat;
mod scores;

use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt};
use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;

pub use scores::{PairScores, Ranked, Scored};

use crate::batcher::DynamicBatcher;
use crate::classifier::Scores;
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::rows::Rows;
use crate::model::{self, FlowOptions, Model, Output, Pair, Prompt, Task};
use crate::source::ModelSource;
use crate::stream::{self, OnStreamProgress};

/// A loaded model that reads a query and a document together and says how relevant the document is: a cross-encoder. It is slower
/// than comparing vectors, and better, so it usually gets the hundred documents that vectors found. Clones are cheap and share the
/// model.
///
/// It loads and runs as an [`Embedder`](crate::Embedder) does: the same sources, configuration, engines, batches, cache,
/// statistics and profile. Models with one label are read from safetensors of the classes `BertForSequenceClassification`,
/// `RobertaForSequenceClassification`, `XLMRobertaForSequenceClassification`, `CamembertForSequenceClassification`,
/// `MPNetForSequenceClassification`, `DistilBertForSequenceClassification`, `ModernBertForSequenceClassification`,
/// `NewForSequenceClassification`, `GteForSequenceClassification` and `JinaBertForSequenceClassification`, of decoders of the classes
/// `Qwen2`-, `Qwen3`-, `Llama`-, `Mistral`- and `Gemma3TextForSequenceClassification`, of decoders whose answer is the score
/// (`LogitScore` in `modules.json`), and others from ONNX files that give `logits`.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::Reranker;
///
/// let reranker = Reranker::load("cross-encoder/ms-marco-MiniLM-L6-v2").await?;
/// let documents = ["The capital of France is Paris.", "France exports cheese."];
/// for found in reranker.rank("What is the capital of France?", documents).await? {
///     println!("{:.3}  {}", found.score, documents[found.index]);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Reranker {
    pub(crate) model: Arc<Model>,
}

/// Options of a call for scores that override the model's files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ScoreOptions {
    /// [`Scores::Sigmoid`] for probabilities, [`Scores::Logits`] for the model's own numbers; the order is the same. `None`: what
    /// `config.json` defines.
    pub scores: Option<Scores>,
    /// The prompt of the model. A decoder with a chat template gets it as its instruction; for every other model it stands before the
    /// first text of each pair.
    pub prompt: Prompt,
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl ScoreOptions {
    /// Chooses the kind of scores.
    #[must_use]
    pub fn with_scores(mut self, scores: Scores) -> Self {
        self.scores = Some(scores);
        self
    }

    /// Chooses the prompt: for a decoder, its instruction.
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

/// Options of a call that ranks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RankOptions {
    /// How many documents are given back, the best first; all where there are fewer. `None`: all.
    pub top_n: Option<usize>,
    /// What scores are, and what stops the call.
    pub score: ScoreOptions,
}

impl RankOptions {
    /// Gives back the best `top_n` documents.
    #[must_use]
    pub fn with_top_n(mut self, top_n: usize) -> Self {
        self.top_n = Some(top_n);
        self
    }

    /// Chooses the kind of scores.
    #[must_use]
    pub fn with_scores(mut self, scores: Scores) -> Self {
        self.score.scores = Some(scores);
        self
    }

    /// Chooses the prompt: for a decoder, its instruction.
    #[must_use]
    pub fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.score.prompt = prompt;
        self
    }

    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.score.cancel = Some(cancel);
        self
    }

    /// The best of what was scored.
    pub(crate) fn cut(&self, scores: &PairScores) -> Vec<Ranked> {
        let mut ranked = scores.ranked();
        ranked.truncate(self.top_n.unwrap_or(usize::MAX));
        ranked
    }

    /// Refuses to give back nothing: nobody means it, and all pairs would be computed for it.
    pub(crate) fn check(&self) -> Result<()> {
        if self.top_n == Some(0) {
            return Err(Error::Config(vec![
                "the option top_n is 0, which leaves no document; leave it out for all".into(),
            ]));
        }
        Ok(())
    }
}

/// Loads a reranker; from [`Reranker::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct RerankerBuilder {
    pub(crate) loading: Loading,
}

ask_for_model!(RerankerBuilder);

impl RerankerBuilder {
    /// Loads the model: finds its files, leaves the logits as its one output, and hands it to an engine.
    ///
    /// # Errors
    /// As [`EmbedderBuilder::load`](crate::EmbedderBuilder::load); [`Error::Config`] for a pooling, a normalisation or a
    /// dimension, which scores do not have; `UnsupportedModel` for a model that gives no logits, or those of several labels.
    pub fn load(self) -> BoxFuture<'static, Result<Reranker>> {
        Box::pin(async move {
            let model = model::load(self.loading.asked(), Output::Relevance).await?;
            Ok(Reranker {
                model: Arc::new(model),
            })
        })
    }
}

impl Reranker {
    /// Loads a model with the default configuration, as [`Embedder::load`](crate::Embedder::load) does.
    /// [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`RerankerBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> RerankerBuilder {
        RerankerBuilder::new(source)
    }

    /// Ranks documents by their relevance to a query, the best first; documents of the same score in their order. Where a query
    /// and a document are too long together, the longer one is cut first.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) names the document; [`Tokenize`](Error::Tokenize) and [`Engine`](Error::Engine) for
    /// failures of the tokenizer and the engine.
    pub fn rank<D: AsRef<str>>(
        &self,
        query: impl AsRef<str>,
        documents: impl IntoIterator<Item = D>,
    ) -> BoxFuture<'static, Result<Vec<Ranked>>> {
        self.rank_with(query, documents, RankOptions::default())
    }

    /// Ranks documents with options of the call.
    ///
    /// # Errors
    /// As [`rank`](Self::rank); [`Error::Config`] for a `top_n` of 0, and for scores that one number does not have.
    pub fn rank_with<D: AsRef<str>>(
        &self,
        query: impl AsRef<str>,
        documents: impl IntoIterator<Item = D>,
        options: RankOptions,
    ) -> BoxFuture<'static, Result<Vec<Ranked>>> {
        let pairs = Pair::with_first(query.as_ref(), documents);
        let model = Arc::clone(&self.model);
        Box::pin(async move {
            options.check()?;
            let scores = model.call::<Relevance, _>(pairs, options.score.clone());
            Ok(options.cut(&scores.await?))
        })
    }

    /// The relevance of the second text of each pair to the first, in the order of the pairs.
    ///
    /// # Errors
    /// As [`rank`](Self::rank), with the pair's place for the document's.
    pub fn score<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> BoxFuture<'static, Result<PairScores>> {
        self.score_with(pairs, ScoreOptions::default())
    }

    /// Scores pairs with options of the call.
    ///
    /// # Errors
    /// As [`score`](Self::score), and [`Error::Config`] for scores that one number does not have.
    pub fn score_with<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
        options: ScoreOptions,
    ) -> BoxFuture<'static, Result<PairScores>> {
        Box::pin(Arc::clone(&self.model).call::<Relevance, _>(Pair::all(pairs), options))
    }

    /// Scores a stream of pairs of any length in flat memory: results in order, one a pair, as
    /// [`Embedder::embed_stream`](crate::Embedder::embed_stream) gives vectors.
    pub fn score_stream<S, A, B>(
        &self,
        pairs: S,
        options: ScoreOptions,
    ) -> impl Stream<Item = Result<Scored>> + use<S, A, B>
    where
        S: Stream<Item = (A, B)>,
        A: AsRef<str>,
        B: AsRef<str>,
    {
        let pairs = pairs.map(|(first, second)| Ok::<_, Error>(Pair::new(first, second)));
        stream::rows::<Relevance, _, _, _>(Arc::clone(&self.model), pairs, options, None)
    }

    /// The same for a stream that may fail itself, as
    /// [`Embedder::try_embed_stream`](crate::Embedder::try_embed_stream) takes it. `on_progress` is told after every window how
    /// far the stream has come.
    pub fn try_score_stream<S, A, B, E, P>(
        &self,
        pairs: S,
        options: ScoreOptions,
        on_progress: P,
    ) -> impl Stream<Item = Result<Scored, E>> + use<S, A, B, E, P>
    where
        P: OnStreamProgress + 'static,
        S: Stream<Item = Result<(A, B), E>>,
        A: AsRef<str>,
        B: AsRef<str>,
        E: From<Error>,
    {
        let on_progress: Arc<dyn OnStreamProgress> = Arc::new(on_progress);
        let pairs = pairs.map_ok(|(first, second)| Pair::new(first, second));
        let model = Arc::clone(&self.model);
        stream::rows::<Relevance, _, _, _>(model, pairs, options, Some(on_progress))
    }

    /// A batcher that joins the calls of many tasks, with a queue of its own.
    pub fn batcher(&self) -> DynamicBatcher<Self> {
        DynamicBatcher::over(Arc::clone(&self.model))
    }
}

impl DynamicBatcher<Reranker> {
    /// Ranks documents together with those of other callers; see [`Reranker::rank`].
    ///
    /// # Errors
    /// As there, and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn rank<D: AsRef<str>>(
        &self,
        query: impl AsRef<str>,
        documents: impl IntoIterator<Item = D>,
    ) -> BoxFuture<'static, Result<Vec<Ranked>>> {
        self.rank_with(query, documents, RankOptions::default())
    }

    /// The same with options of the call. Calls with different options run together all the same.
    ///
    /// # Errors
    /// As [`rank`](Self::rank), and as [`Reranker::rank_with`].
    pub fn rank_with<D: AsRef<str>>(
        &self,
        query: impl AsRef<str>,
        documents: impl IntoIterator<Item = D>,
        options: RankOptions,
    ) -> BoxFuture<'static, Result<Vec<Ranked>>> {
        if let Err(error) = options.check() {
            return Box::pin(async { Err(error) });
        }
        let pairs = Pair::with_first(query.as_ref(), documents);
        let scores = self.call::<Relevance, _>(pairs, options.score.clone());
        Box::pin(async move { Ok(options.cut(&scores.await?)) })
    }

    /// Scores pairs together with those of other callers; see [`Reranker::score`].
    ///
    /// # Errors
    /// As there, and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn score<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> BoxFuture<'static, Result<PairScores>> {
        self.score_with(pairs, ScoreOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`score`](Self::score), and as [`Reranker::score_with`].
    pub fn score_with<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
        options: ScoreOptions,
    ) -> BoxFuture<'static, Result<PairScores>> {
        self.call::<Relevance, _>(Pair::all(pairs), options)
    }
}

/// Pairs become one number each.
#[derive(Debug)]
pub(crate) struct Relevance {
    scores: Scores,
}

impl Task for Relevance {
    type Options = ScoreOptions;
    type Set = PairScores;
    type Row = Scored;

    fn of(model: &Model, options: &ScoreOptions) -> Result<Self> {
        let labels = model.labels.as_ref().ok_or_else(|| {
            Error::Config(vec![
                "this model was loaded for vectors, and not for scores".into(),
            ])
        })?;
        if options.scores == Some(Scores::Softmax) {
            return Err(Error::Config(vec![
                "the option scores is softmax, which makes 1 of every score of a reranker; sigmoid and logits are left".into(),
            ]));
        }
        Ok(Self {
            scores: options.scores.unwrap_or(labels.scores),
        })
    }

    fn flow(options: &ScoreOptions) -> FlowOptions {
        FlowOptions {
            prompt: options.prompt.clone(),
            cancel: options.cancel.clone(),
        }
    }

    fn set(&self, _: &Model, rows: Rows) -> Result<PairScores> {
        let Rows {
            mut values,
            token_counts,
            truncated,
            ..
        } = rows;
        self.scores.apply(&mut values);
        Ok(PairScores {
            scores: values,
            token_counts,
            truncated,
        })
    }

    fn rows(set: PairScores) -> impl Iterator<Item = Scored> {
        set.into_rows()
    }

    fn tokens(row: &Scored) -> u32 {
        row.tokens
    }
}

describe_model!(Reranker);
