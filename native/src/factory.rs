//! Making engines: the library, the weights, the sessions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use futures_channel::oneshot;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::description::describe;
use isovec_engine::engine::{Engine, EngineFactory, Probe};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::maybe_send::EngineFuture;

use crate::engine::{OrtEngine, c_names, spawn};
use crate::runtime::runtime;
use crate::sys::{Session, SessionOptions};
use crate::{NAME, explain, graph, library, weights};

/// Past this many threads an operator of an embedding model's size gains little.
const MOST_DEFAULT_THREADS: usize = 4;

/// ONNX Runtime on the CPU, from a shared library that the config, the `ORT_DYLIB_PATH` variable
/// or set-up's cache names; see [`EngineConfig::onnxruntime_library`]. 1.24 is the oldest that
/// works.
///
/// A process can use only one library. Asking for a second one is
/// [`EngineError::EngineUnavailable`].
#[derive(Debug, Clone, Copy, Default)]
pub struct OnnxRuntime;

impl EngineFactory for OnnxRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self, config: &EngineConfig) -> Probe {
        match library::probe(config) {
            Ok(library) => Probe::Available {
                version: library.version,
                providers: vec!["CPU".into()],
            },
            Err(problem) => Probe::Unavailable {
                reason: problem.reason,
                hint: problem.hint,
            },
        }
    }

    fn load<'a>(
        &'a self,
        bundle: &'a ModelBundle,
        config: &'a EngineConfig,
        cancel: &'a Cancel,
    ) -> EngineFuture<'a, Arc<dyn Engine>> {
        Box::pin(async move {
            cancel.check()?;
            let load = Arc::new(Load::default());
            let _dropped = CancelOnDrop(Arc::clone(&load));
            let _cancelled = cancel.on_cancel({
                let load = Arc::clone(&load);
                move || load.cancel()
            });
            // Reading weights may compute, and making a session does; the caller's thread is for
            // polling. The clones share the weights.
            let (bundle, config) = (bundle.clone(), config.clone());
            let (reply, answer) = oneshot::channel();
            spawn(move || {
                let result = load.run(&bundle, &config);
                // Whoever waits may let go of the model next, and is to be the last to hold it.
                drop((bundle, load));
                let _ = reply.send(result);
            })?;
            let engine: Arc<dyn Engine> = answer.await.unwrap_or_else(|_| {
                Err(EngineError::Runtime {
                    engine: NAME,
                    doing: "loading the model",
                    detail: "the loading thread panicked".into(),
                })
            })?;
            Ok(engine)
        })
    }
}

/// A model that is being loaded, and the handles to stop that.
#[derive(Debug, Default)]
struct Load {
    cancelled: AtomicBool,
    options: Mutex<Option<Arc<SessionOptions>>>,
}

struct CancelOnDrop(Arc<Load>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Load {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        let options = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(options) = &*options {
            options.cancel_load();
        }
    }

    fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::SeqCst) {
            Err(EngineError::Cancelled)
        } else {
            Ok(())
        }
    }

    fn run(&self, bundle: &ModelBundle, config: &EngineConfig) -> Result<Arc<dyn Engine>> {
        let runtime = runtime(config)?;
        let fail = |error: ort::Error| explain::load(&bundle.origin, &error);
        let description = describe(bundle);
        let graph = graph::serialise(bundle)?;
        let threads = config
            .session
            .intra_op_threads
            .unwrap_or_else(default_threads);
        let options = SessionOptions::new(threads).map_err(fail)?;
        let weights = pollster::block_on(weights::take(&*bundle.weights, || self.check()))?;
        let options = Arc::new(options);
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&options));
        // After they are where `cancel` finds them.
        self.check()?;
        let inputs = c_names(
            description.inputs.iter().map(|input| &input.name),
            &bundle.origin,
        )?;
        let session = Session::new(&runtime.env, &graph, &options, &inputs, weights);
        *self.options.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let session = session.map_err(fail)?;
        self.check()?;
        if session.outputs() != description.outputs.len() {
            return Err(EngineError::invalid_model(
                &bundle.origin,
                format!(
                    "its graph declares {} outputs, ONNX Runtime sees {}",
                    description.outputs.len(),
                    session.outputs()
                ),
            ));
        }
        let engine = OrtEngine::new(runtime, description, vec![session], threads, &bundle.origin)?;
        Ok(Arc::new(engine))
    }
}

/// The physical cores that this process may use, at most 4.
fn default_threads() -> usize {
    let usable = thread::available_parallelism().map_or(1, usize::from);
    num_cpus::get_physical()
        .min(usable)
        .clamp(1, MOST_DEFAULT_THREADS)
}
