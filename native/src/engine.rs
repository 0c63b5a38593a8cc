//! A loaded model: runs on the caller's thread, or on the engine's.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use isovec_engine::buffers::BufferPool;
use isovec_engine::cancel::{Cancel, OnCancel};
use isovec_engine::counters::Ended;
use isovec_engine::description::ModelDescription;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::{Batch, Capabilities, Engine, ProviderInfo, RunOutput};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::panics;
use isovec_engine::profile::{Event, Runs, Span, Stage};
use isovec_engine::stats::EngineStats;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use smallvec::SmallVec;

use crate::counts::Counts;
use crate::options::Provider;
use crate::outputs::OutputSizes;
use crate::own_profile::Taking;
use crate::pool::{Lease, Pool};
use crate::predict::{self, Prediction};
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::slot::Slot;
use crate::sys::{Names, Session, Value, element_type};
use crate::{NAME, explain, provider};

/// ONNX Runtime with a model in it.
#[derive(Debug)]
pub(crate) struct OrtEngine {
    shared: Arc<Shared>,
    /// The engine's threads end when this is gone.
    jobs: Sender<Job>,
}

/// What the engine and its threads hold together.
#[derive(Debug)]
pub(crate) struct Shared {
    runtime: &'static Runtime,
    provider: ProviderInfo,
    description: ModelDescription,
    capabilities: Capabilities,
    settings: Settings,
    inputs: Names,
    outputs: Names,
    output_names: Vec<Arc<str>>,
    output_sizes: OutputSizes,
    /// One for all slots: a session may run in several threads at once, and sharing it is the
    /// only way to share all that it made of the weights.
    session: Session,
    slots: Arc<Pool<Slot>>,
    buffers: BufferPool,
    counts: Counts,
    prediction: Option<Prediction>,
    /// The profile that ONNX Runtime takes by itself, where one was asked for.
    taking: Option<Taking>,
    /// Bytes in the session's arena before any run.
    bytes_at_rest: u64,
    /// The message of a panic in a run: what it left behind is not to be trusted.
    poison: OnceLock<String>,
    queue: Mutex<Receiver<Job>>,
}

/// A batch on its way to one of the engine's threads.
#[derive(Debug)]
struct Job {
    asked: Instant,
    waiting: Span,
    batch: Batch,
    cancel: Cancel,
    reply: oneshot::Sender<Result<RunOutput>>,
}

/// Everything that an engine is made of.
pub(crate) struct Parts {
    pub(crate) runtime: &'static Runtime,
    pub(crate) description: ModelDescription,
    pub(crate) settings: Settings,
    pub(crate) session: Session,
    /// The coarsest numbers that its products compute with.
    pub(crate) precision: Precision,
    pub(crate) origin: String,
}

impl OrtEngine {
    /// Puts a session to work, with a slot and a thread for each run that may be under way.
    pub(crate) fn new(parts: Parts, cancel: &Cancel) -> Result<Self> {
        let Parts {
            runtime,
            description,
            settings,
            session,
            precision,
            origin,
        } = parts;
        let inputs = c_names(description.inputs.iter().map(|input| &input.name), &origin)?;
        let outputs = c_names(
            description.outputs.iter().map(|output| &output.name),
            &origin,
        )?;
        let mut capabilities = Capabilities::default();
        capabilities.concurrent_runs = settings.pool_size;
        capabilities.intra_op_threads = settings.intra_op_threads;
        capabilities.cancels_running = true;
        capabilities.deterministic = settings.deterministic && settings.provider == Provider::Cpu;
        capabilities.precision = precision;

        let output_sizes = OutputSizes::new(&description);
        let unbound = output_sizes.unknown(&description);
        let slots = (0..settings.pool_size)
            .map(|_| Slot::new().map_err(|error| explain::run(&error)))
            .collect::<Result<Vec<_>>>()?;
        // Read back, not remembered: which provider truly has the nodes.
        let placement = session.placement().map_err(|error| explain::run(&error))?;
        provider::assigned(settings.provider, &placement)?;
        let counts = Counts::new(&slots, settings.io_binding, unbound, placement);
        let buffers = BufferPool::new(settings.pool);
        let bytes_at_rest = session
            .arena(&runtime.env)
            .and_then(|arena| arena.bytes())
            .ok()
            .flatten()
            .unwrap_or(0);

        let (jobs, queue) = channel();
        let mut shared = Shared {
            runtime,
            provider: ProviderInfo::new(
                NAME,
                provider::short_name(settings.provider),
                runtime.library.version.as_str(),
            ),
            capabilities,
            inputs: Names::new(inputs),
            outputs: Names::new(outputs),
            output_names: description
                .outputs
                .iter()
                .map(|output| Arc::from(output.name.as_str()))
                .collect(),
            output_sizes,
            description,
            taking: settings.profiling.is_some().then(Taking::default),
            settings,
            session,
            slots: Arc::new(Pool::new(slots)),
            buffers,
            counts,
            prediction: None,
            bytes_at_rest,
            poison: OnceLock::new(),
            queue: Mutex::new(queue),
        };
        if shared.settings.prediction {
            shared.prediction = shared.calibrate(cancel)?;
            shared.counts.reset();
        }
        shared.fill_pool()?;
        let shared = Arc::new(shared);
        for _ in 0..shared.settings.pool_size {
            let shared = Arc::clone(&shared);
            spawn(move || shared.work())?;
        }
        Ok(Self { shared, jobs })
    }
}

/// Names as the C interface takes them.
pub(crate) fn c_names<'a>(
    names: impl Iterator<Item = &'a String>,
    origin: &str,
) -> Result<Vec<CString>> {
    names
        .map(|name| CString::new(name.as_str()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| EngineError::invalid_model(origin, "a tensor's name holds a zero byte"))
}

#[cfg(test)]
impl OrtEngine {
    /// Whether every slot is running something.
    pub(crate) fn busy(&self) -> bool {
        self.shared.slots.exhausted()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Leaves the engine as a panic in a run would.
    pub(crate) fn poison(&self, detail: &str) {
        self.shared.poison.get_or_init(|| detail.into());
    }
}

/// Starts one of the engine's threads. They are not joined: an engine may be dropped where
/// nobody may wait, and what a thread still holds goes when its run has ended.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new()
        .name("isovec-onnxruntime".into())
        // As much as a main thread has; ONNX Runtime recurses over nested graphs.
        .stack_size(8 << 20)
        .spawn(work)
        .map(drop)
        .map_err(|error| EngineError::Runtime {
            engine: NAME,
            doing: "starting a thread",
            detail: error.to_string(),
        })
}

impl Engine for OrtEngine {
    fn provider(&self) -> &ProviderInfo {
        &self.shared.provider
    }

    fn description(&self) -> &ModelDescription {
        &self.shared.description
    }

    fn capabilities(&self) -> &Capabilities {
        &self.shared.capabilities
    }

    fn effective(&self) -> &EffectiveConfig {
        &self.shared.settings.effective
    }

    fn stats(&self) -> EngineStats {
        let shared = &self.shared;
        let mut stats = shared.counts.read(&shared.slots);
        stats.sessions.peak_run_bytes = shared.peak_run_bytes();
        stats.memory_pool = shared.buffers.stats();
        stats.provider.engine.clone_from(&shared.provider.engine);
        stats
            .provider
            .selected
            .clone_from(&shared.provider.provider);
        stats
    }

    fn end_profile(&self, runs: &Runs) -> Vec<Event> {
        let taking = self.shared.taking.as_ref();
        let own = taking.map(|taking| taking.end(&self.shared.session));
        own.map_or_else(Vec::new, |own| runs.operators(own))
    }

    fn predicted_bytes(&self, rows: usize, row_length: usize) -> Option<u64> {
        Some(self.shared.prediction?.bytes(rows, row_length))
    }

    fn alloc(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        self.shared.alloc(dtype, shape)
    }

    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput> {
        Box::pin(async move {
            self.shared.admit(&batch, cancel)?;
            self.run_queued(batch, cancel).await
        })
    }

    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        self.shared.admit(&batch, cancel)?;
        match self.shared.slots.try_take() {
            Some(lease) => self.shared.run_in_slot(lease, batch, cancel),
            // Others wait too: the engine's threads go from one batch to the next without a
            // pause, where a caller would first have to be woken.
            None => pollster::block_on(self.run_queued(batch, cancel)),
        }
    }
}

impl OrtEngine {
    /// Has one of the engine's threads run a batch.
    async fn run_queued(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        // The run's own token: cancelled with the caller's, and when this future is dropped.
        let own = CancelOnDrop(Cancel::new());
        let forward = own.0.clone();
        let _forward = cancel.on_cancel(move || forward.cancel());
        let (reply, answer) = oneshot::channel();
        let job = Job {
            asked: Instant::now(),
            waiting: batch.scope.span(Stage::Wait),
            batch,
            cancel: own.0.clone(),
            reply,
        };
        self.shared.slots.line_up();
        if self.jobs.send(job).is_err() {
            self.shared.slots.step_up();
            return Err(self.shared.gone());
        }
        // Who gives up does not wait for those before it, nor for its own run to stop.
        match select(answer, cancel.cancelled()).await {
            Either::Left((answer, _)) => answer.unwrap_or_else(|_| Err(self.shared.gone())),
            Either::Right(((), _)) => Err(EngineError::Cancelled),
        }
    }
}

struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Shared {
    /// What can be refused before anything is queued.
    fn admit(&self, batch: &Batch, cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        self.healthy()?;
        batch.check(&self.description)
    }

    fn healthy(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(detail) => Err(EngineError::EnginePoisoned {
                engine: NAME,
                detail: detail.clone(),
            }),
        }
    }

    /// What to tell a caller whose job nobody will answer.
    fn gone(&self) -> EngineError {
        self.healthy().err().unwrap_or(EngineError::EnginePoisoned {
            engine: NAME,
            detail: "its thread has ended".into(),
        })
    }

    /// A buffer for an input or output.
    fn alloc(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let started = Instant::now();
        let (tensor, reused) = self.buffers.take(dtype, shape)?;
        self.counts.buffer(started.elapsed(), reused);
        Ok(tensor)
    }

    /// Buffers for the first batches: a row of each input at its longest is not known, so they
    /// are as large as a planned batch of the SDK's default, 256 positions.
    fn fill_pool(&self) -> Result<()> {
        const POSITIONS: usize = 256;
        const ROWS: usize = 16;
        let element = self
            .description
            .inputs
            .iter()
            .filter_map(|input| input.dtype)
            .map(DType::size)
            .max()
            .unwrap_or(8);
        self.buffers
            .reserve(self.settings.inputs_ahead, POSITIONS * element)?;
        self.buffers.reserve(
            self.settings.outputs_ahead,
            self.output_sizes.bytes(ROWS).min(1 << 20),
        )
    }

    /// Measures what two small runs take.
    fn calibrate(&self, cancel: &Cancel) -> Result<Option<Prediction>> {
        predict::calibrate(&self.description, cancel, |batch| {
            drop(self.run(batch, cancel)?);
            Ok(Some(self.peak_run_bytes()).filter(|&bytes| bytes > 0))
        })
    }

    /// The most bytes that were in use in the session's arena, less those that were before any
    /// run; 0 where the arena is off, whose allocator does not count.
    fn peak_run_bytes(&self) -> u64 {
        let peak = self
            .session
            .arena(&self.runtime.env)
            .and_then(|arena| arena.peak_bytes());
        let peak = peak.ok().flatten().unwrap_or(0);
        peak.saturating_sub(self.bytes_at_rest)
    }

    /// The life of one of the engine's threads.
    fn work(&self) {
        loop {
            let first = self
                .queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(first) = first else {
                return;
            };
            // From here on this thread waits in its place.
            self.slots.step_up();
            let mut lease = match self.take_slot(&first.cancel) {
                Ok(lease) => lease,
                Err(error) => {
                    let _ = first.reply.send(Err(error));
                    continue;
                }
            };
            // The slot is kept while somebody waits, and free before the last one is answered.
            let mut next = Some(first);
            while let Some(job) = next {
                self.counts.waited(job.asked.elapsed());
                drop(job.waiting);
                let result = self
                    .healthy()
                    .and_then(|()| job.cancel.check())
                    .and_then(|()| self.run_leased(&mut lease, job.batch, &job.cancel));
                next = self.next_job();
                match next {
                    Some(_) => self.slots.step_up(),
                    None => lease.give_back(),
                }
                // A caller who is gone reads no reply.
                let _ = job.reply.send(result);
            }
        }
    }

    /// The job that waits longest, if any does. Where another thread has the queue, it waits for
    /// the next job itself, so there is none.
    fn next_job(&self) -> Option<Job> {
        match self.queue.try_lock() {
            Ok(queue) => queue.try_recv().ok(),
            Err(TryLockError::Poisoned(queue)) => queue.into_inner().try_recv().ok(),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for a slot and runs the batch in it, on this thread.
    fn run(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        let mut lease = self.take_slot(cancel)?;
        self.run_leased(&mut lease, batch, cancel)
    }

    /// Runs the batch in a slot that was idle.
    fn run_in_slot(
        &self,
        mut lease: Lease<'_, Slot>,
        batch: Batch,
        cancel: &Cancel,
    ) -> Result<RunOutput> {
        self.counts.waited(Duration::ZERO);
        self.run_leased(&mut lease, batch, cancel)
    }

    fn run_leased(
        &self,
        lease: &mut Lease<'_, Slot>,
        mut batch: Batch,
        cancel: &Cancel,
    ) -> Result<RunOutput> {
        let Some(slot) = lease.as_mut() else {
            return Err(self.gone());
        };
        let number = slot.run.begin().map_err(|error| explain::run(&error))?;
        let hook = cancel.hook(Arc::clone(&slot.run) as Arc<dyn OnCancel>, number);
        let running = batch.scope.span(Stage::Run);
        let started = Instant::now();
        let result = guarded(
            &self.poison,
            AssertUnwindSafe(|| self.run_in(slot, &mut batch)),
        );
        drop(hook);
        slot.run.end();
        let took = started.elapsed();
        drop(running);
        let result = match result {
            Err(error) if slot.run.is_cancelled() && !poisoned(&error) => {
                Err(EngineError::Cancelled)
            }
            result => result,
        };
        let ended = Ended::of(&result);
        slot.count(took, ended);
        self.counts.ran(took, ended);
        match result {
            Ok(outputs) => Ok(RunOutput {
                outputs,
                inputs: batch.inputs,
                row_lengths: batch.row_lengths,
            }),
            // The slot is not put back: its destructor may trip over what the panic left.
            Err(error) => {
                if poisoned(&error) {
                    std::mem::forget(lease.take());
                }
                Err(error)
            }
        }
    }

    fn take_slot(&self, cancel: &Cancel) -> Result<Lease<'_, Slot>> {
        let check = || self.healthy().and_then(|()| cancel.check());
        check()?;
        if let Some(lease) = self.slots.try_take() {
            return Ok(lease);
        }
        let _woken = cancel.hook(Arc::clone(&self.slots) as Arc<dyn OnCancel>, 0);
        self.slots.take(check)
    }

    fn run_in(&self, slot: &Slot, batch: &mut Batch) -> Result<Vec<NamedTensor>> {
        let fail = |error: ort::Error| explain::run_on(self.settings.provider, &error);
        let mut outputs = std::mem::take(&mut batch.outputs);
        self.bind(batch, &mut outputs)?;

        let mut inputs: SmallVec<[Value<'_>; 4]> = SmallVec::new();
        for description in &self.description.inputs {
            let tensor =
                batch
                    .input(&description.name)
                    .ok_or_else(|| EngineError::InvalidInput {
                        name: description.name.clone(),
                        detail: "is missing from the batch".into(),
                    })?;
            inputs.push(self.input(tensor).map_err(fail)?);
        }
        let mut results: SmallVec<[Option<Value<'_>>; 4]> = SmallVec::new();
        for output in &mut outputs {
            let tensor = &mut output.tensor;
            if tensor.is_empty() {
                results.push(None);
                continue;
            }
            let (dtype, shape) = (tensor.dtype(), SmallVec::<[usize; 4]>::from(tensor.shape()));
            let view = Value::view_mut(&self.runtime.env, dtype, &shape, tensor.bytes_mut());
            results.push(Some(view.map_err(fail)?));
        }
        let bound: SmallVec<[bool; 4]> = results.iter().map(Option::is_some).collect();
        results.resize_with(self.outputs.texts().len(), || None);
        let taking = self.taking.as_ref().map(Taking::run);
        self.session
            .run(
                &self.inputs,
                &inputs,
                &self.outputs,
                &mut results,
                slot.run.options(self.buffers.memory_is_short()),
            )
            .map_err(fail)?;
        drop(taking);

        let made: SmallVec<[Option<Tensor>; 4]> = results
            .iter()
            .zip(&self.output_names)
            .enumerate()
            .map(|(at, (value, name))| match value {
                Some(value) if !bound.get(at).copied().unwrap_or(false) => {
                    copy(name, value, &|dtype, shape| self.alloc(dtype, shape)).map(Some)
                }
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        drop(results);
        for (at, tensor) in made.into_iter().enumerate() {
            let Some(tensor) = tensor else {
                self.counts.output(0);
                continue;
            };
            self.counts.output(tensor.byte_len());
            match outputs.get_mut(at) {
                Some(slot) => slot.tensor = tensor,
                None => outputs.push(NamedTensor::new(Arc::clone(&self.output_names[at]), tensor)),
            }
        }
        // The caller's tensors are in the host's memory: on a device each crosses once, no more.
        if self.settings.provider != Provider::Cpu {
            let bytes = |tensors: &[NamedTensor]| -> usize {
                tensors.iter().map(|named| named.tensor.byte_len()).sum()
            };
            self.counts.crossed(bytes(&batch.inputs), bytes(&outputs));
        }
        Ok(outputs)
    }

    /// Puts a tensor for every output into the list, in the model's order, as far as their sizes
    /// can be told: the caller's own where they fit, and others from the pool.
    fn bind(&self, batch: &Batch, outputs: &mut Vec<NamedTensor>) -> Result<()> {
        if !self.counts.binds() {
            outputs.clear();
            return Ok(());
        }
        for (at, size) in self.output_sizes.of(batch).enumerate() {
            let Some((dtype, shape)) = size else {
                outputs.clear();
                return Ok(());
            };
            let name = &self.output_names[at];
            if let Some(given) = outputs.iter().position(|output| output.name == *name) {
                outputs.swap(at, given);
                let tensor = &mut outputs[at].tensor;
                if tensor.capacity() >= shape.iter().product::<usize>() * dtype.size() {
                    tensor.reset(dtype, &shape)?;
                } else {
                    *tensor = self.alloc(dtype, &shape)?;
                }
            } else {
                let tensor = self.alloc(dtype, &shape)?;
                outputs.insert(at, NamedTensor::new(Arc::clone(name), tensor));
            }
        }
        outputs.truncate(self.output_names.len());
        Ok(())
    }

    /// An input as ONNX Runtime reads it.
    fn input<'t>(&self, tensor: &'t Tensor) -> crate::sys::Result<Value<'t>> {
        if self.settings.zero_copy {
            self.counts.input(0);
            Value::view(
                &self.runtime.env,
                tensor.dtype(),
                tensor.shape(),
                tensor.bytes(),
            )
        } else {
            self.counts.input(tensor.byte_len());
            Value::copy_of(tensor.dtype(), tensor.shape(), tensor.bytes())
        }
    }
}

fn poisoned(error: &EngineError) -> bool {
    matches!(error, EngineError::EnginePoisoned { .. })
}

/// Runs `work`; a panic in it becomes an error and stays on record.
fn guarded<T>(
    poison: &OnceLock<String>,
    work: AssertUnwindSafe<impl FnOnce() -> Result<T>>,
) -> Result<T> {
    catch_unwind(work).unwrap_or_else(|panic| {
        let detail = panics::message(&*panic);
        tracing::error!(target: "isovec", "panic in a run of ONNX Runtime: {detail}");
        let detail = poison.get_or_init(|| detail).clone();
        Err(EngineError::EnginePoisoned {
            engine: NAME,
            detail,
        })
    })
}

/// An output out of ONNX Runtime's memory.
fn copy(
    name: &str,
    value: &Value<'_>,
    alloc: &dyn Fn(DType, &[usize]) -> Result<Tensor>,
) -> Result<Tensor> {
    let fail = |detail: String| EngineError::Runtime {
        engine: NAME,
        doing: "reading an output",
        detail: format!("{name}: {detail}"),
    };
    let (number, shape, data) = value.read().map_err(|error| fail(explain::text(&error)))?;
    let dtype = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::I8,
    ]
    .into_iter()
    .find(|&dtype| element_type(dtype) as i32 == number)
    .ok_or_else(|| {
        fail(format!(
            "ONNX element type {number} is not one that isovec carries"
        ))
    })?;
    let mut tensor = alloc(dtype, &shape)?;
    if !tensor.is_empty() {
        let len = tensor.byte_len();
        // SAFETY: a tensor of this type and shape holds that many bytes, and `value` keeps them.
        tensor
            .bytes_mut()
            .copy_from_slice(unsafe { std::slice::from_raw_parts(data, len) });
    }
    Ok(tensor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_and_stays_on_record() {
        let poison = OnceLock::new();
        let result: Result<()> =
            guarded(&poison, AssertUnwindSafe(|| panic!("broken {}", "badly")));
        assert!(matches!(
            result,
            Err(EngineError::EnginePoisoned { engine: NAME, detail }) if detail == "broken badly"
        ));
        assert_eq!(poison.get().map(String::as_str), Some("broken badly"));
        assert_eq!(guarded(&poison, AssertUnwindSafe(|| Ok(7))).unwrap(), 7);
    }
}
