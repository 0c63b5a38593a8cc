//! A loaded model: runs on the caller's thread, or on the engine's.

use std::any::Any;
use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use futures_channel::oneshot;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::ModelDescription;
use isovec_engine::engine::{Batch, Capabilities, Engine, ProviderInfo, RunOutput};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use ort::session::RunOptions;

use crate::pool::Pool;
use crate::runtime::Runtime;
use crate::sys::{Session, Value, element_type};
use crate::{NAME, explain};

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
    inputs: Vec<CString>,
    outputs: Vec<CString>,
    sessions: Pool<Session>,
    /// The message of a panic in a run: what it left behind is not to be trusted.
    poison: OnceLock<String>,
    queue: Mutex<Receiver<Job>>,
}

/// A batch on its way to one of the engine's threads.
#[derive(Debug)]
struct Job {
    batch: Batch,
    ticket: Arc<Ticket>,
    reply: oneshot::Sender<Result<RunOutput>>,
}

/// The handle by which a run is cancelled, before it begins or while it runs.
struct Ticket {
    cancelled: AtomicBool,
    options: RunOptions,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket")
            .field("cancelled", &self.cancelled)
            .finish_non_exhaustive()
    }
}

impl Ticket {
    fn new() -> Result<Arc<Self>> {
        let options = RunOptions::new().map_err(|error| explain::run(&error))?;
        Ok(Arc::new(Self {
            cancelled: AtomicBool::new(false),
            options,
        }))
    }

    fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::SeqCst) {
            Err(EngineError::Cancelled)
        } else {
            Ok(())
        }
    }
}

impl OrtEngine {
    /// Puts sessions of one model to work, with a thread for each.
    pub(crate) fn new(
        runtime: &'static Runtime,
        description: ModelDescription,
        sessions: Vec<Session>,
        intra_op_threads: usize,
        origin: &str,
    ) -> Result<Self> {
        let inputs = c_names(description.inputs.iter().map(|input| &input.name), origin)?;
        let outputs = c_names(
            description.outputs.iter().map(|output| &output.name),
            origin,
        )?;
        let mut capabilities = Capabilities::default();
        capabilities.concurrent_runs = sessions.len();
        capabilities.intra_op_threads = intra_op_threads;
        capabilities.cancels_running = true;
        let threads = sessions.len();
        let (jobs, queue) = channel();
        let shared = Arc::new(Shared {
            runtime,
            provider: ProviderInfo::new(NAME, "CPU", runtime.library.version.as_str()),
            description,
            capabilities,
            inputs,
            outputs,
            sessions: Pool::new(sessions),
            poison: OnceLock::new(),
            queue: Mutex::new(queue),
        });
        for _ in 0..threads {
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
    /// Whether every session is running something.
    pub(crate) fn busy(&self) -> bool {
        self.shared.sessions.exhausted()
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

    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput> {
        Box::pin(async move {
            self.shared.admit(&batch, cancel)?;
            let ticket = Ticket::new()?;
            // Dropped with this future, finished or not; to cancel what has finished does nothing.
            let _dropped = CancelOnDrop {
                shared: &self.shared,
                ticket: &ticket,
            };
            let _cancelled = cancel.on_cancel(self.shared.canceller(&ticket));
            let (reply, answer) = oneshot::channel();
            let job = Job {
                batch,
                ticket: Arc::clone(&ticket),
                reply,
            };
            self.jobs.send(job).map_err(|_| self.shared.gone())?;
            answer.await.unwrap_or_else(|_| Err(self.shared.gone()))
        })
    }

    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        self.shared.admit(&batch, cancel)?;
        let ticket = Ticket::new()?;
        let _cancelled = cancel.on_cancel(self.shared.canceller(&ticket));
        self.shared.run(batch, &ticket)
    }
}

struct CancelOnDrop<'a> {
    shared: &'a Shared,
    ticket: &'a Ticket,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.cancel(self.ticket);
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

    fn cancel(&self, ticket: &Ticket) {
        ticket.cancelled.store(true, Ordering::SeqCst);
        // Cannot fail on options that exist; if it did, the run would end by itself.
        let _ = ticket.options.terminate();
        self.sessions.wake();
    }

    fn canceller(self: &Arc<Self>, ticket: &Arc<Ticket>) -> impl FnOnce() + Send + 'static {
        let (shared, ticket) = (Arc::clone(self), Arc::clone(ticket));
        move || shared.cancel(&ticket)
    }

    /// The life of one of the engine's threads.
    fn work(&self) {
        loop {
            let job = self
                .queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok(Job {
                batch,
                ticket,
                reply,
            }) = job
            else {
                return;
            };
            if ticket.check().is_err() {
                continue; // The caller is gone; nobody reads the reply.
            }
            let result = self.run(batch, &ticket);
            let _ = reply.send(result);
        }
    }

    /// Waits for a session and runs the batch in it, on this thread.
    fn run(&self, batch: Batch, ticket: &Ticket) -> Result<RunOutput> {
        let mut lease = self
            .sessions
            .take(|| self.healthy().and_then(|()| ticket.check()))?;
        let run = AssertUnwindSafe(|| match lease.as_mut() {
            Some(session) => self.run_in(session, &batch, ticket),
            None => Err(self.gone()),
        });
        match guarded(&self.poison, run) {
            Ok(outputs) => Ok(RunOutput {
                outputs,
                inputs: batch.inputs,
            }),
            // The session is not put back: its destructor may trip over what the panic left.
            Err(error @ EngineError::EnginePoisoned { .. }) => {
                std::mem::forget(lease.take());
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn run_in(
        &self,
        session: &mut Session,
        batch: &Batch,
        ticket: &Ticket,
    ) -> Result<Vec<NamedTensor>> {
        let mut inputs: Vec<(&CStr, Value<'_>)> = Vec::with_capacity(self.inputs.len());
        for (description, name) in self.description.inputs.iter().zip(&self.inputs) {
            let tensor =
                batch
                    .input(&description.name)
                    .ok_or_else(|| EngineError::InvalidInput {
                        name: description.name.clone(),
                        detail: "is missing from the batch".into(),
                    })?;
            let view = Value::view(
                &self.runtime.env,
                tensor.dtype(),
                tensor.shape(),
                tensor.bytes(),
            )
            .map_err(|error| explain::run(&error))?;
            inputs.push((name, view));
        }
        let values = session
            .run(&inputs, &self.outputs, &ticket.options)
            .map_err(|error| ticket.check().err().unwrap_or_else(|| explain::run(&error)))?;
        self.description
            .outputs
            .iter()
            .zip(values)
            .map(|(output, value)| {
                Ok(NamedTensor::new(
                    output.name.clone(),
                    copy(&output.name, &value)?,
                ))
            })
            .collect()
    }
}

/// Runs `work`; a panic in it becomes an error and stays on record.
fn guarded<T>(
    poison: &OnceLock<String>,
    work: AssertUnwindSafe<impl FnOnce() -> Result<T>>,
) -> Result<T> {
    catch_unwind(work).unwrap_or_else(|panic| {
        let detail = message(panic.as_ref());
        tracing::error!(target: "isovec", "panic in a run of ONNX Runtime: {detail}");
        let detail = poison.get_or_init(|| detail).clone();
        Err(EngineError::EnginePoisoned {
            engine: NAME,
            detail,
        })
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "a panic without a message".into())
}

/// An output out of ONNX Runtime's memory.
fn copy(name: &str, value: &Value<'_>) -> Result<Tensor> {
    let fail = |detail: String| EngineError::Runtime {
        engine: NAME,
        doing: "reading an output",
        detail: format!("{name}: {detail}"),
    };
    let (number, shape, data) = value.read().map_err(|error| fail(explain::text(&error)))?;
    let dtype = [
        DType::F32,
        DType::F16,
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
    let mut tensor = Tensor::zeros(dtype, &shape)?;
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
