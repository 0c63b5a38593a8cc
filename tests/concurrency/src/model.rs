//! A model whose texts are lists of numbers and whose vectors are their sum and their count.

#[path = "../../../src/model/encoded.rs"]
pub(crate) mod encoded;
#[path = "../../../src/model/own_cancel.rs"]
mod own_cancel;
#[path = "../../../src/model/rows.rs"]
pub(crate) mod rows;

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_channel::oneshot;
use isovec_engine::EngineError;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Capabilities, RunOutput};
use isovec_engine::profile::{Profiler, Scope, Span};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_model::head;
use isovec_tokenize::Encoding;

pub(crate) use own_cancel::OwnCancel;

use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::plan::{Budget, Tokens};
use encoded::Encoded;
use rows::{RowForm, Rows};

/// A batch with this number fails.
pub const POISON: u32 = 900;
/// A batch with this number ends when it is cancelled, and not before.
pub const HELD: u32 = 901;
/// Components of a vector.
pub const DIM: usize = 2;

/// A model around an engine that only counts.
#[derive(Debug)]
pub struct Model {
    pub(crate) dim: usize,
    budget: Budget,
    pub(crate) batching: Batching,
    pub(crate) prompts: Prompts,
    pub(crate) recorder: Recorder,
    pub(crate) profiler: Profiler,
    pub(crate) feed: Feed,
    pub(crate) engines: Engines,
    running: Arc<AtomicUsize>,
}

/// What the batcher reads of its settings.
#[derive(Debug)]
pub(crate) struct Batching {
    pub(crate) min_rows: usize,
    pub(crate) preferred_rows: usize,
    pub(crate) max_wait: Duration,
    pub(crate) max_queue: usize,
    pub(crate) max_queue_tokens: usize,
    pub(crate) steering: Option<Aim>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pub(crate) target_latency: Duration,
    pub(crate) throughput: bool,
}

impl Model {
    /// An engine of `slots` runs at a time behind a queue of `max_queue` texts.
    pub fn new(slots: usize, max_queue: usize) -> Arc<Self> {
        let mut capabilities = Capabilities::default();
        capabilities.concurrent_runs = slots;
        Arc::new(Self {
            dim: DIM,
            budget: Budget {
                rows: 2,
                tokens: Tokens::same(6),
                least: 1,
                ragged: false,
            },
            batching: Batching {
                min_rows: 1,
                preferred_rows: 2,
                max_wait: Duration::ZERO,
                max_queue,
                max_queue_tokens: 1 << 20,
                steering: None,
            },
            prompts: Prompts,
            recorder: Recorder,
            profiler: Profiler::default(),
            feed: Feed,
            engines: Engines(Engine(capabilities)),
            running: Arc::default(),
        })
    }

    /// No row is kept here.
    pub(crate) async fn cached<I, F>(
        &self,
        items: Vec<I>,
        _options: &FlowOptions,
        compute: impl FnOnce(Vec<I>) -> F,
    ) -> Result<Rows>
    where
        F: Future<Output = Result<Rows>>,
    {
        compute(items).await
    }

    pub(crate) fn new_rows(&self, items: usize, prompt: Option<String>) -> Result<Rows> {
        Rows::new(items, self.dim, RowForm::Whole, prompt)
    }

    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }

    /// Runs that have not ended.
    pub fn running(&self) -> usize {
        self.running.load(SeqCst)
    }

    /// The vector of a text.
    pub fn vector(text: &str) -> [f32; DIM] {
        of(&numbers(text))
    }

    pub(crate) fn allowed_bytes(&self) -> Option<u64> {
        None
    }

    pub(crate) fn fits(&self, _: usize, _: usize, _: Option<u64>) -> bool {
        true
    }

    /// As the caller's own run.
    pub(crate) async fn run(
        &self,
        start: usize,
        encodings: &[Encoded],
        cancel: &Cancel,
        rows: &mut Rows,
        _: &Scope,
    ) -> Result<()> {
        let mut span = Span::default();
        let output = self.run_texts(encodings, cancel, &mut span).await?;
        let places: Vec<usize> = (0..encodings.len()).collect();
        rows.place(start, &places, &output)
    }

    /// A run on a thread of the engine's, which a cancellation ends.
    pub(crate) async fn run_texts(
        &self,
        texts: &[Encoded],
        cancel: &Cancel,
        _: &mut Span,
    ) -> Result<RunOutput> {
        cancel.check()?;
        // As an engine's, this run ends when nobody waits for it.
        let _running = Running::new(&self.running);
        let (reply, answer) = oneshot::channel();
        let reply = Arc::new(Mutex::new(Some(reply)));
        let send = move |output: Result<RunOutput>| {
            let reply = reply.lock().ok().and_then(|mut reply| reply.take());
            // Nobody may be there any more.
            let _ = reply.map(|reply| reply.send(output));
        };
        let stop = send.clone();
        let _stopped = cancel.on_cancel(move || stop(Err(EngineError::Cancelled.into())));
        let ids = texts
            .iter()
            .filter_map(Encoded::text)
            .map(|text| text.ids.clone());
        let ids: Vec<Vec<u32>> = ids.collect();
        let has = |id: u32| ids.iter().flatten().any(|&of| of == id);
        if has(POISON) {
            shuttle::thread::spawn(move || send(Err(poisoned())));
        } else if !has(HELD) {
            shuttle::thread::spawn(move || send(output(&ids)));
        }
        answer
            .await
            .unwrap_or_else(|_| Err(EngineError::Cancelled.into()))
    }
}

/// What calls are made of.
pub(crate) trait OwnedItem: Sized + Send + Sync + 'static {
    const WINDOW: usize;

    fn encode(model: &Model, items: &[Self], prefix: &str) -> Result<Vec<Encoded>>;
}

impl OwnedItem for String {
    const WINDOW: usize = 4096;

    fn encode(_: &Model, texts: &[Self], _: &str) -> Result<Vec<Encoded>> {
        Ok(texts.iter().map(|text| encoded(numbers(text))).collect())
    }
}

/// A text that is there as its ids.
pub(crate) struct TokenIds(pub(crate) Vec<u32>);

impl OwnedItem for TokenIds {
    const WINDOW: usize = String::WINDOW;

    fn encode(_: &Model, texts: &[Self], _: &str) -> Result<Vec<Encoded>> {
        Ok(texts.iter().map(|Self(ids)| encoded(ids.clone())).collect())
    }
}

fn encoded(ids: Vec<u32>) -> Encoded {
    let mut encoding = Encoding::default();
    encoding.ids = ids;
    Encoded::Text(encoding)
}

/// Nobody looks here.
pub(crate) fn tokenized(_: Span, _: &[Encoded]) {}

fn numbers(text: &str) -> Vec<u32> {
    let words = text.split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

fn of(ids: &[u32]) -> [f32; DIM] {
    [ids.iter().sum::<u32>() as f32, ids.len() as f32]
}

fn output(ids: &[Vec<u32>]) -> Result<RunOutput> {
    let values: Vec<f32> = ids.iter().flat_map(|ids| of(ids)).collect();
    let tensor = Tensor::from_slice(&[ids.len(), DIM], &values)?;
    let mut output = RunOutput::default();
    output.outputs.push(NamedTensor::new(head::OUTPUT, tensor));
    Ok(output)
}

fn poisoned() -> Error {
    let error = EngineError::Runtime {
        engine: "counting",
        doing: "running",
        detail: "poisoned".into(),
    };
    error.into()
}

/// A run that has not ended.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[derive(Debug)]
pub(crate) struct Engines(Engine);

impl Engines {
    pub(crate) fn current(&self) -> &Engine {
        &self.0
    }
}

#[derive(Debug)]
pub(crate) struct Engine(Capabilities);

impl Engine {
    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.0
    }
}

#[derive(Debug)]
pub(crate) struct Feed;

impl Feed {
    pub(crate) fn padded(&self, length: usize) -> usize {
        length
    }
}

#[derive(Debug)]
pub(crate) struct Prompts;

impl Prompts {
    pub(crate) fn resolve(&self, _: &Prompt) -> Result<(Lead, Option<String>)> {
        Ok((Lead, None))
    }
}

/// What a prompt does with texts: here nothing.
#[derive(Debug, Clone)]
pub(crate) struct Lead;

impl Deref for Lead {
    type Target = str;

    fn deref(&self) -> &str {
        ""
    }
}

impl Lead {
    pub(crate) fn adapt(&self, texts: Vec<Encoded>) -> Vec<Encoded> {
        texts
    }
}

/// What is put before a text: here nothing.
#[derive(Debug, Clone, Default)]
pub enum Prompt {
    /// The only one that is asked for.
    #[default]
    Default,
    /// For [`DynamicBatcher::embed_query`](crate::batcher::DynamicBatcher::embed_query).
    Query,
    /// For [`DynamicBatcher::embed_passages`](crate::batcher::DynamicBatcher::embed_passages).
    Passage,
}

/// How texts are embedded.
#[derive(Debug, Clone, Default)]
pub struct EmbedOptions {
    pub(crate) prompt: Prompt,
    /// Stops the call when cancelled.
    pub cancel: Option<Cancel>,
}

impl EmbedOptions {
    pub(crate) fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }
}

/// What the batcher reads of a call's options.
#[derive(Debug, Clone)]
pub(crate) struct FlowOptions {
    pub(crate) prompt: Prompt,
    pub(crate) cancel: Option<Cancel>,
}

/// What a call makes of its rows.
pub(crate) trait Task: Sized + Send + Sync + 'static {
    type Options: Clone + Send + Sync + 'static;
    type Set;

    fn of(model: &Model, options: &Self::Options) -> Result<Self>;

    fn flow(options: &Self::Options) -> FlowOptions;

    fn set(&self, model: &Model, rows: Rows) -> Result<Self::Set>;
}

/// The rows as they are.
pub(crate) struct Vectors;

impl Task for Vectors {
    type Options = EmbedOptions;
    type Set = Embeddings;

    fn of(_: &Model, _: &EmbedOptions) -> Result<Self> {
        Ok(Self)
    }

    fn flow(options: &EmbedOptions) -> FlowOptions {
        FlowOptions {
            prompt: options.prompt.clone(),
            cancel: options.cancel.clone(),
        }
    }

    fn set(&self, _: &Model, rows: Rows) -> Result<Embeddings> {
        Ok(Embeddings(rows.values))
    }
}

/// Statistics, which nobody reads here.
#[derive(Debug)]
pub(crate) struct Recorder;

impl Recorder {
    pub(crate) fn call(&self) -> Call {
        Call
    }

    pub(crate) fn tokenized(&self, _: Duration, _: &[Encoded]) {}

    pub(crate) fn queued(&self, _: Duration) {}
}

/// A call that nobody counts.
pub(crate) struct Call;

impl Call {
    pub(crate) fn ended<T>(self, _: &Result<T>) {}
}
