//! A loaded model, which turns texts into vectors.

mod allowance;
mod batching;
mod calibration;
pub(crate) mod encoded;
pub(crate) mod feed;
mod form;
pub(crate) mod frame;
mod head;
mod item;
mod load;
mod origin;
mod own_cancel;
mod precision;
mod prompts;
mod query_words;
pub(crate) mod reader;
pub(crate) mod rows;
mod small;
mod task;
mod tokens;
mod vocabulary;

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, Engine, RunOutput};
use isovec_engine::fingerprint::Fingerprint;
use isovec_engine::profile::{Detail, EndProfile, Event, Profiler, Runs, Scope, Span, Stage};
use isovec_engine::tensor::DType;
use isovec_model::sparse::Weighting;
use web_time::Instant;

pub(crate) use batching::Batching;
pub(crate) use item::{Item, LateText, OwnedItem, Pair, TokenIds, prepared};
pub use load::{OnProgress, Progress};
pub(crate) use load::{
    Output, Prepared, Purpose, Watch, complete, load, load_for, open, prepare, resolve,
};
pub(crate) use origin::Fetched;
pub(crate) use own_cancel::OwnCancel;
pub use prompts::Prompt;
pub(crate) use prompts::{Lead, Prompts};
pub(crate) use task::{FlowOptions, Task, Vectors};
#[cfg(feature = "ocr")]
pub(crate) use {
    head::pooling_name, load::memory_for_weights, origin::HubUse, precision::computed,
    small::Stored,
};

use crate::backend;
use crate::cache::EmbeddingCache;
use crate::classifier::Labels;
use crate::config::EmbeddingConfig;
use crate::effective::EffectiveConfig;
use crate::embeddings::{Embeddings, Parts};
use crate::error::{Error, Result};
use crate::fallback::Engines;
use crate::multi_vector::LateReader;
use crate::plan::{Budget, Plan};
use crate::similarity::Similarity;
use crate::stats::{Recorder, Stats};
use allowance::Allowance;
use calibration::Calibration;
use encoded::Encoded;
use feed::Feed;
use form::Form;
use query_words::QueryWords;
use reader::Reader;
use rows::{RowForm, Rows};

/// How texts are embedded, where it differs from the model's settings.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EmbedOptions {
    /// The prompt before every text.
    pub prompt: Prompt,
    /// Keep only the first components (matryoshka), and scale them to unit length again where the
    /// vectors are to have it. `None`: all that the model gives as it was loaded.
    pub dimension: Option<usize>,
    /// Whether vectors are scaled to unit length. `None`: as the model was loaded. A model that was
    /// loaded with vectors of unit length gives no others.
    pub normalize: Option<bool>,
    /// Stops the work when cancelled, as dropping the future does.
    pub cancel: Option<Cancel>,
}

impl EmbedOptions {
    /// Chooses the prompt before every text.
    #[must_use]
    pub fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }

    /// Keeps only the first components of every vector (matryoshka): the vectors are those of a
    /// model that was loaded with this `text.dimension`, but for rounding. More than the model
    /// gives, or none, is [`Error::Config`].
    #[must_use]
    pub fn with_dimension(mut self, dimension: usize) -> Self {
        self.dimension = Some(dimension);
        self
    }

    /// Chooses whether vectors are scaled to unit length. The length that a model was loaded to
    /// take off cannot be had back: `false` is [`Error::Config`] for a model that was loaded with
    /// vectors of unit length; load it with `text.normalize = false`.
    #[must_use]
    pub fn with_normalize(mut self, normalize: bool) -> Self {
        self.normalize = Some(normalize);
        self
    }

    /// Stops the work when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }
}

/// Everything that turns texts into vectors, shared by all handles.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) engines: Engines,
    pub(crate) name: String,
    /// As it was asked for.
    pub(crate) config: EmbeddingConfig,
    pub(crate) dim: usize,
    pub(crate) max_length: usize,
    pub(crate) fingerprint: Arc<Fingerprint>,
    pub(crate) metric: Similarity,
    /// What the rows' numbers mean, where they are scores of labels.
    pub(crate) labels: Option<Labels>,
    /// What makes weights of the rows' numbers, where they are words'.
    pub(crate) weighting: Option<Weighting>,
    /// Words of the vocabulary, where each token has a number and not each word.
    words: Option<usize>,
    /// The weights of a query's words, where queries are not computed.
    query_words: Option<Arc<QueryWords>>,
    /// How texts are read whose tokens get a vector each.
    late: Option<LateReader>,
    effective: EffectiveConfig,
    pub(crate) prompts: Prompts,
    pub(crate) reader: Reader,
    pub(crate) normalized: bool,
    /// As configured; [`Self::budget`] has the measured values.
    budget: Budget,
    calibration: Calibration,
    /// How the calls of many are put together.
    pub(crate) batching: Batching,
    /// Whether texts are sorted by length.
    optimize: bool,
    memory: Allowance,
    pub(crate) feed: Feed,
    pub(crate) recorder: Recorder,
    pub(crate) profiler: Profiler,
    /// Vectors that are kept, where that is wanted.
    pub(crate) cache: Option<EmbeddingCache>,
}

impl Model {
    /// Does a task, waiting without blocking. The future may be dropped at any time.
    pub(crate) async fn call<T: Task, I: OwnedItem>(
        self: Arc<Self>,
        items: Vec<I>,
        options: T::Options,
    ) -> Result<T::Set> {
        let call = self.recorder.call();
        let mut request = self.profiler.request(items.len());
        let all = Arc::clone(&self).all::<T, I>(items, options, request.scope());
        let result = all.await;
        request.ended(Error::ended(&result));
        call.ended(&result);
        result
    }

    /// The same, and counts as no call of its own.
    pub(crate) async fn all<T: Task, I: OwnedItem>(
        self: Arc<Self>,
        items: Vec<I>,
        options: T::Options,
        scope: &Scope,
    ) -> Result<T::Set> {
        let task = T::of(&self, &options)?;
        let rows = Arc::clone(&self).rows(items, T::flow(&options), scope);
        task.set(&self, rows.await?)
    }

    /// The model's own rows of items.
    async fn rows<I: OwnedItem>(
        self: Arc<Self>,
        items: Vec<I>,
        options: FlowOptions,
        scope: &Scope,
    ) -> Result<Rows> {
        let model = Arc::clone(&self);
        let compute = |items| model.compute_all(items, options.clone(), scope);
        self.cached(items, &options, compute).await
    }

    /// What every way to rows goes through: `compute` is given the items whose rows are not kept.
    pub(crate) async fn cached<I, F>(
        &self,
        items: Vec<I>,
        options: &FlowOptions,
        compute: impl FnOnce(Vec<I>) -> F,
    ) -> Result<Rows>
    where
        I: OwnedItem,
        F: Future<Output = Result<Rows>>,
    {
        if let Some(table) = self.query_words_for(&options.prompt) {
            return self.look_up(table, items, options).await;
        }
        let cache = self.cache.as_ref().filter(|_| !items.is_empty());
        let (looked, wanted) = match cache {
            None => (None, items),
            Some(cache) => {
                let mut looked = cache.look(self, items, options).await?;
                let wanted = std::mem::take(&mut looked.wanted);
                (Some((cache, looked)), wanted)
            }
        };
        // Called in one place, because what computes is compiled into it.
        let made = match looked.is_some() && wanted.is_empty() {
            true => self.no_rows(&options.prompt),
            false => compute(wanted).await,
        };
        match looked {
            None => made,
            Some((cache, looked)) => cache.complete(self, looked, made).await,
        }
    }

    async fn compute_all<I: OwnedItem>(
        self: Arc<Self>,
        items: Vec<I>,
        options: FlowOptions,
        scope: &Scope,
    ) -> Result<Rows> {
        let (lead, prompt) = self.prompts.resolve(&options.prompt)?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        let mut rows = self.new_rows(items.len(), prompt)?;
        let mut items = items.into_iter();
        let mut start = 0;
        loop {
            let window: Vec<I> = items.by_ref().take(I::WINDOW).collect();
            if window.is_empty() {
                break;
            }
            let (model, lead) = (Arc::clone(&self), lead.clone());
            let encode = move |items: &[I]| Ok(lead.adapt(I::encode(&model, items, &lead)?));
            let since = Instant::now();
            let span = scope.span(Stage::Tokenize);
            let encodings =
                backend::in_slices("tokenising", window, cancel.0.clone(), encode).await?;
            tokenized(span, &encodings);
            self.recorder.tokenized(since.elapsed(), &encodings);
            rows.note(start, &encodings)?;
            self.run(start, &encodings, &cancel.0, &mut rows, scope)
                .await?;
            start += encodings.len();
        }
        Ok(rows)
    }

    /// The vectors of token ids, each alone between the model's special tokens, one after another.
    pub(crate) async fn vectors_of_ids(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<f32>> {
        let reader = self.reader.texts()?;
        let request = self.profiler.request(ids.len());
        let mut rows = self.new_rows(ids.len(), None)?;
        for (window, ids) in ids.chunks(item::TEXTS).enumerate() {
            let start = window * item::TEXTS;
            let encode = |&id| {
                let text = reader.tokenizer.encode_ids("", &[id], &reader.limits)?;
                Ok(reader.encoded(text))
            };
            let encodings: Vec<Encoded> = ids.iter().map(encode).collect::<Result<_>>()?;
            rows.note(start, &encodings)?;
            let run = self.run(start, &encodings, cancel, &mut rows, request.scope());
            run.await?;
        }
        Ok(rows.values)
    }

    /// The names of the labels, where rows are scores.
    pub(crate) fn label_names(&self) -> &[String] {
        self.labels.as_ref().map_or(&[], |labels| &labels.names)
    }

    /// Words of the vocabulary, of a model of sparse vectors.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.words.unwrap_or(self.dim)
    }

    /// How texts are read whose tokens get a vector each.
    ///
    /// # Errors
    /// [`Error::Config`] for a model that was loaded for something else.
    pub(crate) fn late(&self) -> Result<&LateReader> {
        let fault = || {
            Error::Config(vec![
                "this model was not loaded for late interaction".into(),
            ])
        };
        self.late.as_ref().ok_or_else(fault)
    }

    /// What was done so far.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.recorder.read(self.engines.stats());
        stats.embedding_cache = self.cache.as_ref().map(EmbeddingCache::stats);
        stats
    }

    /// Tokens that `embed` would see if there were no limit.
    pub(crate) fn count_tokens(&self, text: &str) -> Result<usize> {
        let (prefix, _) = self.prompts.resolve(&Prompt::Default)?;
        self.count_with(&prefix, text)
    }

    /// The same behind another prompt.
    pub(crate) fn count_with(&self, prefix: &str, text: &str) -> Result<usize> {
        let reader = self.reader.texts()?;
        let text = item::prepared(prefix, text, reader.lowercase);
        Ok(reader.tokenizer.count_tokens(&text)?)
    }

    /// Special tokens that every text gets.
    #[cfg(feature = "chunking")]
    pub(crate) fn special_tokens(&self) -> usize {
        let reader = self.reader.texts();
        reader.map_or(0, |reader| reader.tokenizer.special_tokens_count())
    }

    /// The set of no texts, as these options would have it.
    pub(crate) fn empty_set(&self, options: &EmbedOptions) -> Result<Embeddings> {
        Vectors::of(self, options)?.set(self, self.no_rows(&options.prompt)?)
    }

    /// The rows of no items.
    pub(crate) fn no_rows(&self, prompt: &Prompt) -> Result<Rows> {
        let (_, prompt) = self.prompts.resolve(prompt)?;
        self.new_rows(0, prompt)
    }

    /// Room for the rows of so many items.
    pub(crate) fn new_rows(&self, items: usize, prompt: Option<String>) -> Result<Rows> {
        let form = match (self.weighting, self.normalized) {
            _ if self.late.is_some() => RowForm::Tokens,
            (Some(weighting), _) if self.words.is_some() => RowForm::TokenWeights(weighting),
            (Some(weighting), _) => RowForm::Packed(weighting),
            (None, true) => RowForm::Unit,
            (None, false) => RowForm::Whole,
        };
        Rows::new(items, self.dim, form, prompt)
    }

    /// Runs a window's batches, as many at a time as the engine works on.
    pub(crate) async fn run(
        &self,
        start: usize,
        encodings: &[Encoded],
        cancel: &Cancel,
        rows: &mut Rows,
        scope: &Scope,
    ) -> Result<()> {
        let allowed = self.allowed_bytes();
        let mut plan = self.plan(encodings, allowed);
        if plan.is_several() && self.calibrate_if_due(cancel).await? {
            plan = self.plan(encodings, allowed);
        }
        // One more than the engine works on, so that it never waits for us to ask.
        let capabilities = self.engines.current().capabilities();
        let at_once = if plan.is_several() {
            capabilities.concurrent_runs.saturating_add(1)
        } else {
            1
        };
        let mut next = 0;
        let mut runs = FuturesUnordered::new();
        loop {
            while runs.len() < at_once
                && let Some(places) = plan.batch(next)
            {
                runs.push(async move {
                    let mut span = Scope::batch([scope]);
                    let ran = self.run_batch(encodings, places, allowed, cancel, &mut span);
                    (ran.await, span)
                });
                next += 1;
            }
            let Some((done, span)) = runs.next().await else {
                return Ok(());
            };
            let (places, output) = done?;
            let _copy = span.scope().span(Stage::Copy);
            rows.place(start, places, &output)?;
        }
    }

    /// Runs these texts as one batch.
    pub(crate) async fn run_texts(
        &self,
        encodings: &[Encoded],
        cancel: &Cancel,
        span: &mut Span,
    ) -> Result<RunOutput> {
        let places: Vec<usize> = (0..encodings.len()).collect();
        let allowed = self.allowed_bytes();
        let ran = self.run_batch(encodings, &places, allowed, cancel, span);
        Ok(ran.await?.1)
    }

    async fn run_batch<'p>(
        &self,
        encodings: &[Encoded],
        places: &'p [usize],
        allowed: Option<u64>,
        cancel: &Cancel,
        span: &mut Span,
    ) -> Result<(&'p [usize], RunOutput)> {
        let started = Instant::now();
        self.engines.recover(cancel).await;
        let mut engine = self.engine_for(encodings, places);
        let mut batch = self.batch(engine, encodings, places, allowed, Batch::default())?;
        batch.scope = span.scope().clone();
        let sizes = Sizes::of(&batch, &**engine);
        span.holds((batch.rows(), sizes.real, sizes.computed));
        // What took a lost device's place may be lost as well. There are only so many.
        let output = loop {
            match engine.run(batch, cancel).await {
                Ok(output) => break output,
                Err(error) => engine = self.engines.after_loss(engine, error, cancel).await?,
            }
            batch = self.batch(engine, encodings, places, None, Batch::default())?;
            batch.scope = span.scope().clone();
        };
        self.recorder
            .ran(started.elapsed(), sizes.real, sizes.computed);
        Ok((places, output))
    }

    /// The engine for the texts at `places`.
    pub(crate) fn engine_for(&self, encodings: &[Encoded], places: &[usize]) -> &Arc<dyn Engine> {
        let tokens = places.iter().map(|&place| encodings[place].len()).sum();
        self.engines.for_tokens(tokens)
    }

    /// The batch of the texts at `places`, unless it would not fit into memory.
    pub(crate) fn batch(
        &self,
        engine: &Arc<dyn Engine>,
        encodings: &[Encoded],
        places: &[usize],
        allowed: Option<u64>,
        spare: Batch,
    ) -> Result<Batch> {
        if allowed.is_some() {
            let (rows, length) = self.feed.extents(encodings, places);
            Allowance::check(engine.predicted_bytes(rows, length), allowed)?;
        }
        self.feed.batch(&**engine, encodings, places, spare)
    }

    /// Bytes that one batch may take now; `None`: nobody knows.
    pub(crate) fn allowed_bytes(&self) -> Option<u64> {
        self.memory.bytes()
    }

    /// Whether a batch is foretold to fit into `allowed` bytes.
    pub(crate) fn fits(&self, rows: usize, length: usize, allowed: Option<u64>) -> bool {
        let predicted = self.engines.current().predicted_bytes(rows, length);
        Allowance::check(predicted, allowed).is_ok()
    }

    pub(crate) fn plan(&self, encodings: &[Encoded], allowed: Option<u64>) -> Plan {
        let lengths: Vec<usize> = encodings
            .iter()
            .map(|encoding| self.feed.padded(encoding.len()))
            .collect();
        let fits = |rows, length| self.fits(rows, length, allowed);
        let budget = self.budget();
        if self.optimize {
            Plan::new(&lengths, budget, fits)
        } else {
            Plan::in_order(&lengths, budget.rows, fits)
        }
    }

    /// Vectors of this model's in a form, with what is known of their texts.
    pub(crate) fn set(
        &self,
        form: &Form,
        values: Vec<f32>,
        token_counts: Vec<u32>,
        truncated: Vec<bool>,
        prompt: Option<String>,
    ) -> Result<Embeddings> {
        Embeddings::from_parts(
            "the model's output",
            Parts {
                dim: form.dim,
                values,
                token_counts,
                truncated,
                labels: None,
                fingerprint: Arc::clone(&form.fingerprint),
                metric: self.metric,
                prompt,
                model: self.name.clone(),
            },
        )
    }
}

impl EndProfile for Model {
    fn end_profile(&self, runs: &Runs) -> Vec<Event> {
        self.engines.current().end_profile(runs)
    }
}

/// Ends the span of tokenising.
pub(crate) fn tokenized(mut span: Span, encodings: &[Encoded]) {
    if span.scope().is_on() {
        span.set(Detail::Texts {
            texts: encodings.len(),
            tokens: encodings.iter().map(|text| text.len()).sum(),
        });
    }
}

/// How many positions a batch computes, and how many of them are tokens.
pub(crate) struct Sizes {
    pub(crate) real: usize,
    pub(crate) computed: usize,
}

impl Sizes {
    /// Those of a batch on an engine that computes its padding, or does not.
    pub(crate) fn of(batch: &Batch, engine: &dyn Engine) -> Self {
        let real = batch.row_lengths.iter().sum();
        let first = batch.inputs.first();
        Self {
            real,
            computed: match first {
                // Pictures are all of one size.
                Some(input) if input.tensor.dtype() == DType::F32 => real,
                Some(input) if !engine.capabilities().ragged => input.tensor.len(),
                _ => real,
            },
        }
    }
}

#[cfg(test)]
mod alone;
#[cfg(test)]
pub(crate) mod counting;
#[cfg(test)]
mod tests;
