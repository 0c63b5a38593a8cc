//! Making engines: the library, the weights, the sessions.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use futures_channel::oneshot;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::description::{ModelDescription, describe};
use isovec_engine::engine::{Engine, EngineFactory, Probe};
use isovec_engine::error::{EngineError, Result};
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::EngineFuture;
use isovec_model::precision::{in_blocks, widened};

use crate::engine::{OrtEngine, Parts, c_names, spawn};
use crate::kept::Kept;
use crate::options::{Options, Provider};
use crate::runtime::{Runtime, runtime};
use crate::settings::{self, Settings};
use crate::sys::{Session, SessionOptions, end};
use crate::{NAME, explain, graph, library, provider, weights};

/// ONNX Runtime, on one of its providers, from a shared library that the options, the `ORT_DYLIB_PATH`
/// variable or set-up's cache names. 1.24 is the oldest that works.
///
/// A process can use only one library. Asking for a second one is
/// [`EngineError::EngineUnavailable`].
#[derive(Debug, Clone, Default)]
pub struct OnnxRuntime {
    options: Options,
}

impl OnnxRuntime {
    /// Engines that are made with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// The library that was asked for.
    fn library(&self) -> Option<&Path> {
        self.options.library.as_deref()
    }
}

impl EngineFactory for OnnxRuntime {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Probe {
        match library::probe(self.library()) {
            Ok(library) => Probe::Available {
                version: library.version,
                // Which providers it has, only a library that is in use can tell.
                providers: runtime(self.library())
                    .and_then(|_| provider::available())
                    .unwrap_or_else(|_| vec![Provider::Cpu])
                    .into_iter()
                    .map(|provider| provider.name().to_owned())
                    .collect(),
            },
            Err(problem) => Probe::Unavailable {
                reason: problem.reason,
                hint: problem.hint,
            },
        }
    }

    fn check(&self, config: &EngineConfig) -> Result<()> {
        let faults = settings::path_faults(config);
        if !faults.is_empty() {
            return Err(EngineError::Config(faults));
        }
        runtime(self.library())?;
        provider::check(&self.options)
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
            let (bundle, config, cancel) = (bundle.clone(), config.clone(), cancel.clone());
            let options = self.options.clone();
            let (reply, answer) = oneshot::channel();
            spawn(move || {
                let result = load.run(&bundle, &options, &config, &cancel);
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

/// Makes a session whose optimised graph is kept in `folder`, and reads that.
pub(crate) fn written_down(
    bundle: &ModelBundle,
    options: &Options,
    config: &EngineConfig,
    folder: &Path,
    cancel: &Cancel,
) -> Result<ModelBundle> {
    let load = Arc::new(Load {
        quiet: true,
        ..Load::default()
    });
    let _cancelled = cancel.on_cancel({
        let load = Arc::clone(&load);
        move || load.cancel()
    });
    let runtime = runtime(options.library.as_deref())?;
    let bundle = &held(bundle, options);
    let description = describe(bundle);
    let settings = Settings::new(config, &description, options);
    drop(load.session(runtime, bundle, options, &description, &settings)?);
    let (library, key) = (&runtime.library.version, settings.optimization_key());
    Kept::new(folder, bundle, library, &key)
        .read(bundle)
        .ok_or_else(|| EngineError::Runtime {
            engine: NAME,
            doing: "writing the optimised graph",
            detail: "the written file cannot be read".into(),
        })
}

/// The model as a session takes it. Products multiply whole numbers where the model asks for rounded activations and the
/// processor multiplies bytes; elsewhere that gains nothing. All other small weights become f32s: of int8 ones ONNX Runtime
/// would make products that round activations as well, and it would dequantise tables at every run.
fn held(bundle: &ModelBundle, options: &Options) -> ModelBundle {
    match options.provider == Provider::Cpu && multiplies_bytes() {
        true => widened(&in_blocks(bundle)),
        false => widened(bundle),
    }
}

/// The coarsest numbers that products of a model compute with, as [`held`] made them.
fn precision(bundle: &ModelBundle) -> Precision {
    let mut nodes = bundle.graph.graph.iter().flat_map(|graph| &graph.node);
    match bundle.rounds_activations() && nodes.any(|node| node.op_type == "MatMulNBits") {
        true => Precision::Int8Fast,
        false => Precision::F32,
    }
}

/// Whether the processor multiplies bytes, as ONNX Runtime's kernels for 8 bits want it.
pub(crate) fn multiplies_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = std::arch::is_x86_feature_detected!("avx512vnni");
        let narrow = std::arch::is_x86_feature_detected!("avxvnni");
        wide || narrow
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("dotprod")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

/// A model that is being loaded, and the handles to stop that.
#[derive(Debug, Default)]
struct Load {
    cancelled: AtomicBool,
    /// Whether warnings were said already, by another load of the same model.
    quiet: bool,
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
        if let Some(options) = &*self.options() {
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

    fn run(
        &self,
        bundle: &ModelBundle,
        options: &Options,
        config: &EngineConfig,
        cancel: &Cancel,
    ) -> Result<Arc<dyn Engine>> {
        let runtime = runtime(options.library.as_deref())?;
        let bundle = &held(bundle, options);
        let description = describe(bundle);
        let settings = Settings::new(config, &description, options);
        let session = self.session(runtime, bundle, options, &description, &settings)?;
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
        let parts = Parts {
            runtime,
            description,
            settings,
            session,
            precision: precision(bundle),
            origin: bundle.origin.clone(),
        };
        Ok(Arc::new(OrtEngine::new(parts, cancel)?))
    }

    /// Makes the session, from the graph that was optimised at an earlier start if it was kept.
    fn session(
        &self,
        runtime: &Runtime,
        bundle: &ModelBundle,
        asked: &Options,
        description: &ModelDescription,
        settings: &Settings,
    ) -> Result<Session> {
        let inputs = c_names(
            description.inputs.iter().map(|input| &input.name),
            &bundle.origin,
        )?;
        let fail = |error: ort::Error| explain::load(&bundle.origin, &error);
        let make = |bundle: &ModelBundle, mut options: SessionOptions| {
            provider::append(&mut options, asked)?;
            let graph = graph::serialise(bundle)?;
            let weights = pollster::block_on(weights::take(&*bundle.weights, || self.check()))?;
            let options = Arc::new(options);
            *self.options() = Some(Arc::clone(&options));
            // After they are where `cancel` finds them.
            self.check()?;
            let session = Session::new(&runtime.env, &graph, &options, &inputs, weights);
            *self.options() = None;
            static OF_PROCESSOR: Once = Once::new();
            static OF_OTHERS: Once = Once::new();
            end::comes_before_libraries(match asked.provider {
                Provider::Cpu => &OF_PROCESSOR,
                _ => &OF_OTHERS,
            });
            session.map_err(fail)
        };
        let mut options = settings.options().map_err(fail)?;
        let Some(folder) = &settings.optimized_model_cache else {
            return make(bundle, options);
        };
        let kept = Kept::new(
            folder,
            bundle,
            &runtime.library.version,
            &settings.optimization_key(),
        );
        if let Some(optimized) = kept.read(bundle) {
            let mut options = settings.options().map_err(fail)?;
            options.optimization_level(0).map_err(fail)?;
            return make(&optimized, options);
        }
        let Some(written) = kept.begin() else {
            return make(bundle, options);
        };
        options.save_optimized(written.path()).map_err(fail)?;
        if self.quiet {
            options.errors_only().map_err(fail)?;
        }
        let session = make(bundle, options)?;
        kept.complete(written);
        Ok(session)
    }

    fn options(&self) -> MutexGuard<'_, Option<Arc<SessionOptions>>> {
        self.options.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
