//! The same for blocking callers: no executor is needed, and the model computes on the calling thread.
//!
//! ```no_run
//! use isovec::blocking::Embedder;
//! use isovec::models;
//!
//! let embedder = Embedder::load(models::ALL_MINILM_L6_V2)?;
//! let index = embedder.embed_passages(["cats purr", "stocks fell"])?;
//! assert_eq!((index.len(), index.dim()), (2, 384));
//! let query = embedder.embed_query("what does a kitten sound like?")?;
//! println!("{}", index.search_one(&query, 1)?[0].score);
//! # Ok::<(), isovec::Error>(())
//! ```

#[path = "blocking/classifier.rs"]
mod classifier;
#[cfg(feature = "image")]
#[path = "blocking/image_classifier.rs"]
mod image_classifier;
#[cfg(feature = "image")]
#[path = "blocking/image_embedder.rs"]
mod image_embedder;

#[path = "blocking/multi_vector.rs"]
mod multi_vector;
#[path = "blocking/reranker.rs"]
mod reranker;
#[path = "blocking/sparse.rs"]
mod sparse;
#[cfg(feature = "ocr")]
#[path = "blocking/text_reader.rs"]
mod text_reader;

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::profile::{Scope, Span, Stage};
use web_time::Instant;

use crate::backend;
use crate::batcher::{QueueCounts, Shutdown};
#[cfg(feature = "chunking")]
use crate::chunk::{ChunkOptions, Combine, EmbeddedChunks};
use crate::config::EmbeddingConfig;
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::export::{ExportOptions, Exported};
use crate::features::Features;
use crate::hardware::HardwareInfo;
use crate::loading::Loading;
use crate::model::encoded::Encoded;
use crate::model::rows::Rows;
use crate::model::{
    EmbedOptions, FlowOptions, Item, Model, OwnCancel, Prompt, Sizes, Task, Vectors, tokenized,
};
use crate::optimize::{OptimizeOptions, Report};
use crate::source::ModelSource;
use crate::stream::{Embedded, StreamOptions};

pub use classifier::{Classifier, ClassifierBuilder};
#[cfg(feature = "image")]
pub use image_classifier::{ImageClassifier, ImageClassifierBuilder};
#[cfg(feature = "image")]
pub use image_embedder::{ImageEmbedder, ImageEmbedderBuilder};
pub use multi_vector::{MultiVectorEmbedder, MultiVectorEmbedderBuilder};
pub use reranker::{Reranker, RerankerBuilder};
pub use sparse::{SparseEmbedder, SparseEmbedderBuilder};
#[cfg(feature = "ocr")]
pub use text_reader::{TextReader, TextReaderBuilder};

/// Loads a model while the caller blocks; from [`Embedder::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`].
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct EmbedderBuilder {
    loading: Loading,
}

ask_for_model!(EmbedderBuilder);
ask_for_vectors!(EmbedderBuilder);

impl EmbedderBuilder {
    /// Loads the model; see [`isovec::EmbedderBuilder::load`](crate::EmbedderBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<Embedder> {
        let builder = crate::EmbedderBuilder {
            loading: self.loading,
        };
        backend::wait(builder.load()).map(Embedder::from)
    }
}

/// A loaded model that turns texts into vectors while the caller waits. Clones are cheap and share
/// the model, and so does the async handle that it converts into.
#[derive(Debug, Clone)]
pub struct Embedder {
    model: Arc<Model>,
}

impl Embedder {
    /// Loads a model with the default configuration; see
    /// [`isovec::Embedder::load`](crate::Embedder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
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
    /// As [`isovec::Embedder::embed`](crate::Embedder::embed).
    pub fn embed<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Result<Embeddings> {
        self.embed_with(texts, EmbedOptions::default())
    }

    /// Embeds texts with options of the call: a prompt, a dimension, unit length, a cancellation.
    ///
    /// # Errors
    /// As [`isovec::Embedder::embed_with`](crate::Embedder::embed_with).
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: EmbedOptions,
    ) -> Result<Embeddings> {
        let texts: Vec<T> = texts.into_iter().collect();
        let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        self.model.call_blocking::<Vectors, _>(&texts, &options)
    }

    /// The vector of one text.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_one(&self, text: impl AsRef<str>) -> Result<Vec<f32>> {
        Ok(self.embed([text])?.into_vec())
    }

    /// Embeds texts to search with, under the model's query prompt. For one, see
    /// [`embed_query`](Self::embed_query).
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Embeddings> {
        self.embed_with(texts, EmbedOptions::default().with_prompt(Prompt::Query))
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(&self, text: impl AsRef<str>) -> Result<Embeddings> {
        self.embed_queries([text])
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

    /// Cuts texts into chunks and embeds those; see
    /// [`isovec::Embedder::embed_chunks`](crate::Embedder::embed_chunks).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "chunking")]
    pub fn embed_chunks<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
    ) -> Result<EmbeddedChunks> {
        self.embed_chunks_with(texts, options, EmbedOptions::default())
    }

    /// The same with options of the call, which every chunk's embedding gets.
    ///
    /// # Errors
    /// As [`embed_chunks`](Self::embed_chunks).
    #[cfg(feature = "chunking")]
    pub fn embed_chunks_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
        embed: EmbedOptions,
    ) -> Result<EmbeddedChunks> {
        let embedder = crate::Embedder::from(self.clone());
        backend::wait(embedder.embed_chunks_with(texts, options, embed))
    }

    /// Embeds texts of any length: one vector a text; see
    /// [`isovec::Embedder::embed_long`](crate::Embedder::embed_long).
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "chunking")]
    pub fn embed_long<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
        combine: Combine,
    ) -> Result<Embeddings> {
        self.embed_long_with(texts, options, combine, EmbedOptions::default())
    }

    /// The same with options of the call, which every chunk's embedding gets.
    ///
    /// # Errors
    /// As [`embed_long`](Self::embed_long).
    #[cfg(feature = "chunking")]
    pub fn embed_long_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: ChunkOptions,
        combine: Combine,
        embed: EmbedOptions,
    ) -> Result<Embeddings> {
        let embedder = crate::Embedder::from(self.clone());
        backend::wait(embedder.embed_long_with(texts, options, combine, embed))
    }

    /// Embeds any number of texts in flat memory: results in order, one a text; see
    /// [`isovec::Embedder::embed_stream`](crate::Embedder::embed_stream).
    pub fn embed_iter<I>(&self, texts: I) -> impl Iterator<Item = Result<Embedded>> + use<I>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let texts = texts.into_iter().map(Ok::<_, Error>);
        self.try_embed_iter(texts, StreamOptions::default())
    }

    /// The same for texts that may fail to be read; see
    /// [`isovec::Embedder::try_embed_stream`](crate::Embedder::try_embed_stream).
    pub fn try_embed_iter<I, T, E>(
        &self,
        texts: I,
        options: StreamOptions,
    ) -> impl Iterator<Item = Result<Embedded, E>> + use<I, T, E>
    where
        I: IntoIterator<Item = Result<T, E>>,
        T: AsRef<str>,
        E: From<Error>,
    {
        let embedder = crate::Embedder::from(self.clone());
        let mut results = Box::pin(embedder.try_embed_stream(stream::iter(texts), options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(Embedder);
describe_vectors!(Embedder);

/// Looks at the hardware, on a thread of its own; see [`HardwareInfo::detect`].
///
/// # Errors
/// As there.
pub fn hardware() -> Result<HardwareInfo> {
    backend::wait(HardwareInfo::detect())
}

/// Looks at the hardware and tries every engine; see [`Features::detect`].
///
/// # Errors
/// As there.
pub fn features(config: &EmbeddingConfig) -> Result<Features> {
    backend::wait(Features::detect(config))
}

/// Joins the calls of many threads into batches; see
/// [`isovec::DynamicBatcher`](crate::DynamicBatcher), into which it converts.
#[derive(Debug, Clone)]
pub struct DynamicBatcher(crate::DynamicBatcher);

impl DynamicBatcher {
    /// A batcher over a model, with the `batching` knobs of the model's configuration.
    pub fn new(embedder: &Embedder) -> Self {
        Self(crate::DynamicBatcher::new(&embedder.clone().into()))
    }

    /// Embeds texts together with those of other threads: `[n, dim]` in their order.
    ///
    /// # Errors
    /// As [`isovec::DynamicBatcher::embed`](crate::DynamicBatcher::embed).
    pub fn embed<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Result<Embeddings> {
        backend::wait(self.0.embed(texts))
    }

    /// Embeds texts with options of the call: a prompt, a dimension, unit length, a cancellation.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_with<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        options: EmbedOptions,
    ) -> Result<Embeddings> {
        backend::wait(self.0.embed_with(texts, options))
    }

    /// The vector of one text.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_one(&self, text: impl AsRef<str>) -> Result<Vec<f32>> {
        backend::wait(self.0.embed_one(text))
    }

    /// Embeds texts to search with, under the model's query prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Embeddings> {
        backend::wait(self.0.embed_queries(texts))
    }

    /// Embeds a text to search with, under the model's query prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_query(&self, text: impl AsRef<str>) -> Result<Embeddings> {
        backend::wait(self.0.embed_query(text))
    }

    /// Embeds texts to search in, under the model's passage prompt.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Embeddings> {
        backend::wait(self.0.embed_passages(texts))
    }

    /// Embeds a text to search in, under the model's passage prompt: a set of one.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_passage(&self, text: impl AsRef<str>) -> Result<Embeddings> {
        backend::wait(self.0.embed_passage(text))
    }

    /// The same queue for calls that can wait; see
    /// [`isovec::DynamicBatcher::low_priority`](crate::DynamicBatcher::low_priority).
    #[must_use]
    pub fn low_priority(&self) -> Self {
        Self(self.0.low_priority())
    }

    /// The waiting calls, and the counts so far.
    pub fn counts(&self) -> QueueCounts {
        self.0.counts()
    }

    /// Accepts no more calls, and waits until nothing runs.
    pub fn shutdown(&self, how: Shutdown) {
        backend::wait(self.0.shutdown(how));
    }
}

impl From<crate::DynamicBatcher> for DynamicBatcher {
    fn from(batcher: crate::DynamicBatcher) -> Self {
        Self(batcher)
    }
}

impl From<DynamicBatcher> for crate::DynamicBatcher {
    fn from(batcher: DynamicBatcher) -> Self {
        batcher.0
    }
}

impl Model {
    /// Does a task while the calling thread waits. One batch after another runs on that thread; where
    /// the engine runs several at a time and there are several, its threads do.
    pub(crate) fn call_blocking<K: Task, I: Item + Sync>(
        &self,
        items: &[I],
        options: &K::Options,
    ) -> Result<K::Set> {
        let call = self.recorder.call();
        let mut request = self.profiler.request(items.len());
        let result = K::of(self, options).and_then(|task| {
            let rows = self.rows_blocking(items, &K::flow(options), request.scope())?;
            task.set(self, rows)
        });
        request.ended(Error::ended(&result));
        call.ended(&result);
        result
    }

    fn rows_blocking<I: Item + Sync>(
        &self,
        items: &[I],
        options: &FlowOptions,
        scope: &Scope,
    ) -> Result<Rows> {
        if self.cache.is_none() {
            return self.compute_blocking(items, options, scope);
        }
        let compute = |items: Vec<I::Owned>| ready(self.compute_blocking(&items, options, scope));
        let items = items.iter().map(Item::owned).collect();
        backend::wait(self.cached(items, options, compute))
    }

    fn compute_blocking<I: Item + Sync>(
        &self,
        items: &[I],
        options: &FlowOptions,
        scope: &Scope,
    ) -> Result<Rows> {
        let (lead, prompt) = self.prompts.resolve(&options.prompt)?;
        let cancel = OwnCancel::linked(options.cancel.as_ref());
        let mut rows = self.new_rows(items.len(), prompt)?;
        let mut spare = Batch {
            row_lengths: Vec::with_capacity(self.budget().rows.min(items.len())),
            ..Batch::default()
        };
        for (index, window) in items.chunks(I::WINDOW).enumerate() {
            let start = index * I::WINDOW;
            let encode = |items: &[I]| Ok(lead.adapt(I::encode(self, items, &lead)?));
            let since = Instant::now();
            let span = scope.span(Stage::Tokenize);
            let encodings = backend::in_slices_blocking("tokenising", window, &cancel.0, encode)?;
            tokenized(span, &encodings);
            self.recorder.tokenized(since.elapsed(), &encodings);
            rows.note(start, &encodings)?;
            let allowed = self.allowed_bytes();
            let mut plan = self.plan(&encodings, allowed);
            if plan.is_several() && self.engines.current().capabilities().concurrent_runs > 1 {
                backend::wait(self.run(start, &encodings, &cancel.0, &mut rows, scope))?;
                continue;
            }
            if plan.is_several() && backend::wait(self.calibrate_if_due(&cancel.0))? {
                plan = self.plan(&encodings, allowed);
            }
            for places in (0..).map_while(|index| plan.batch(index)) {
                cancel.0.check()?;
                let mut span = Scope::batch([scope]);
                let ran = self.run_here(&encodings, places, allowed, &cancel.0, spare, &mut span);
                let output = ran?;
                let _copy = span.scope().span(Stage::Copy);
                rows.place(start, places, &output)?;
                spare = output.into_spare();
            }
        }
        Ok(rows)
    }

    fn run_here(
        &self,
        encodings: &[Encoded],
        places: &[usize],
        allowed: Option<u64>,
        cancel: &Cancel,
        spare: Batch,
        span: &mut Span,
    ) -> Result<RunOutput> {
        let started = Instant::now();
        backend::wait(self.engines.recover(cancel));
        let mut engine = self.engine_for(encodings, places);
        let mut batch = self.batch(engine, encodings, places, allowed, spare)?;
        batch.scope = span.scope().clone();
        let sizes = Sizes::of(&batch, &**engine);
        span.holds((batch.rows(), sizes.real, sizes.computed));
        // As in `run_batch`: what took a lost device's place may be lost as well.
        let output = loop {
            match engine.run_blocking(batch, cancel) {
                Ok(output) => break output,
                Err(error) => {
                    engine = backend::wait(self.engines.after_loss(engine, error, cancel))?;
                }
            }
            batch = self.batch(engine, encodings, places, None, Batch::default())?;
            batch.scope = span.scope().clone();
        };
        self.recorder
            .ran(started.elapsed(), sizes.real, sizes.computed);
        Ok(output)
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

/// Writes a smaller or faster model into a folder; see [`isovec::optimize`](crate::optimize()).
///
/// # Errors
/// As there.
pub fn optimize(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    options: OptimizeOptions,
) -> Result<Report> {
    backend::wait(crate::optimize(source, folder, config, options))
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
