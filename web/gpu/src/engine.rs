//! The factory and the engine that the SDK sees.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use async_lock::Mutex as AsyncMutex;
use isovec_encoder::{CompileError, Program};
use isovec_engine::buffers::{BufferPool, PoolLimits};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::counters::{Counters, Ended};
use isovec_engine::description::{self, ModelDescription};
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::{
    Batch, Capabilities, Engine, EngineFactory, Probe, ProviderInfo, RunOutput,
};
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::profile::{Span, Stage};
use isovec_engine::stats::{EngineStats, GpuStats};
use isovec_engine::tensor::{DType, Tensor};
use isovec_engine::{EngineError, Result};
use web_time::Instant;

use crate::device::{self, Device, Wanted};
use crate::host::{Discreet, Host};
use crate::limits::Limits;
use crate::model::Model;
use crate::options::Options;
use crate::timing::Timer;
use crate::tuning::Tuning;
use crate::{ENGINE, check, settings, tuning};

/// Makes engines that compute on a GPU.
pub struct WebGpu {
    host: Box<dyn Host>,
    options: Options,
    binding_bytes: Option<u64>,
    tiles: Option<bool>,
    tuning: Option<bool>,
    subgroups: Option<bool>,
    /// The device that all models share, if they do.
    shared: Option<AsyncMutex<Option<Arc<Device>>>>,
}

impl WebGpu {
    /// Engines whose models `host` loads.
    pub fn new(host: Box<dyn Host>) -> Self {
        Self {
            host,
            options: Options::default(),
            binding_bytes: None,
            tiles: None,
            tuning: None,
            subgroups: None,
            shared: None,
        }
    }

    /// Has engines made with these options.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Lowers the bytes of a buffer that a kernel may bind, as adapters with lower limits do.
    #[must_use]
    pub fn with_binding_limit(mut self, bytes: u64) -> Self {
        self.binding_bytes = Some(bytes);
        self
    }

    /// Cuts products of many rows into tiles, or does not: by default on adapters that are GPUs.
    #[must_use]
    pub fn with_tiles(mut self, tiles: bool) -> Self {
        self.tiles = Some(tiles);
        self
    }

    /// Has kernels share by subgroups where the adapter has them, or never: by default on adapters that are GPUs.
    /// Browsers' are not driven yet.
    #[must_use]
    pub fn with_subgroups(mut self, subgroups: bool) -> Self {
        self.subgroups = Some(subgroups);
        self
    }

    /// Measures which ways of cutting products up are the fastest, or goes by a rule: by default the former on adapters
    /// that are GPUs. Where `session.deterministic_compute` is set there is one way, and nothing is measured.
    #[must_use]
    pub fn with_tuning(mut self, tuning: bool) -> Self {
        self.tuning = Some(tuning);
        self
    }

    /// Opens one device and loads all models on it, until it is lost: for many small ones, which would
    /// otherwise spend most of their time on that. A fault of one of them is then everybody's.
    #[must_use]
    pub fn with_one_device(mut self) -> Self {
        self.shared = Some(AsyncMutex::new(None));
        self
    }

    /// A device of its own for a model, or the one that all have.
    async fn device(&self, wanted: &Wanted, host: &dyn Host) -> Result<Arc<Device>> {
        let Some(shared) = &self.shared else {
            return Device::open(wanted, host).await.map(Arc::new);
        };
        let mut shared = shared.lock().await;
        if let Some(device) = shared.as_ref().filter(|device| device.check().is_ok()) {
            return Ok(Arc::clone(device));
        }
        let device = Arc::new(Device::open(wanted, host).await?);
        *shared = Some(Arc::clone(&device));
        Ok(device)
    }

    /// Loads a model, as [`EngineFactory::load`], into an engine whose device can be taken away.
    ///
    /// # Errors
    /// [`EngineError::ProviderUnavailable`] where there is no adapter, if it cannot hold or run the model, and if it
    /// computes wrong vectors; the errors of reading the model.
    pub async fn load_model(
        &self,
        bundle: &ModelBundle,
        config: &EngineConfig,
        cancel: &Cancel,
    ) -> Result<GpuEngine> {
        let host = Discreet {
            host: &*self.host,
            keeps: config.remembers(),
        };
        let options = &self.options;
        let wanted = Wanted {
            software: options.software_adapter,
            low_power: options.low_power,
            tiles: self.tiles,
            subgroups: self.subgroups,
            binding_bytes: self.binding_bytes,
        };
        let device = self.device(&wanted, &host).await?;
        let mut turns = host.pause()?;
        let program = Program::read(bundle, cancel, &mut *turns).await;
        let program = program.map_err(|error| match error {
            CompileError::Engine(error) => error,
            other => EngineError::UnsupportedModel {
                origin: bundle.origin.clone(),
                reason: other.to_string(),
                hint: "The GPU runs transformer encoders; name cpu behind webgpu".into(),
            },
        })?;
        let asked = Asked {
            bundle,
            program: &program,
            description: description::describe(bundle),
            host: &host,
            cancel,
            deterministic: config.session.deterministic_compute == Some(true),
        };
        let mut whole = None;
        if options.f16 == Some(true) {
            match device.limits.half {
                true => match self.ready(&asked, Arc::clone(&device), true).await {
                    Ok((model, recalled)) => {
                        return Ok(GpuEngine::new(
                            model,
                            asked.description,
                            (config, options.f16),
                            recalled,
                            None,
                        ));
                    }
                    // Whatever it does not hold or compute in f16 it may well in f32, and that is what is wanted least
                    // of all to be wrong. Strictly, what was asked for and does not work is an error.
                    Err(EngineError::ProviderUnavailable { reason, .. })
                        if !options.strict && device.check().is_ok() =>
                    {
                        tracing::warn!("computing in f32: {reason}");
                        whole = Some(reason);
                    }
                    Err(error) => return Err(error),
                },
                false => {
                    let name = device::name(&device.info);
                    whole = Some(format!("the adapter {name} does not have shader-f16"));
                }
            }
        }
        let (model, recalled) = self.ready(&asked, device, false).await?;
        Ok(GpuEngine::new(
            model,
            asked.description,
            (config, options.f16),
            recalled,
            whole,
        ))
    }

    /// A model that was checked, and whether that was against what was kept; `half` for arithmetic in f16.
    async fn ready(
        &self,
        asked: &Asked<'_>,
        device: Arc<Device>,
        half: bool,
    ) -> Result<(Model, bool)> {
        let limits = Limits {
            half,
            ..device.limits
        };
        if limits.subgroups.is_some() {
            match self.try_with(asked, Arc::clone(&device), limits).await {
                // Nobody asked for subgroups: a driver that has them wrong may well have the rest right.
                Err(EngineError::ProviderUnavailable { reason, .. })
                    if self.subgroups.is_none() && device.check().is_ok() =>
                {
                    tracing::debug!("going on without subgroups: {reason}");
                }
                done => return done,
            }
        }
        let limits = Limits {
            subgroups: None,
            ..limits
        };
        self.try_with(asked, device, limits).await
    }

    async fn try_with(
        &self,
        asked: &Asked<'_>,
        device: Arc<Device>,
        limits: Limits,
    ) -> Result<(Model, bool)> {
        let Asked {
            bundle,
            program,
            description,
            host,
            cancel,
            deterministic,
        } = asked;
        let tunes = self
            .tuning
            .unwrap_or(device.info.device_type != wgpu::DeviceType::Cpu);
        let mut pause = host.pause()?;
        let mut model = Model::load(bundle, program, device, limits, cancel, &mut *pause).await?;
        if *deterministic {
            model.tuning = Tuning::one(&model.dispatches.steps);
        } else if tunes {
            tuning::tune(&mut model, *host, cancel).await?;
        }
        let recalled = check::compare(&model, program, bundle, description, *host, cancel).await?;
        model.device.keep_compiled(*host).await;
        Ok((model, recalled))
    }
}

/// What is loaded, and for whom.
struct Asked<'a> {
    bundle: &'a ModelBundle,
    program: &'a Program,
    description: ModelDescription,
    host: &'a dyn Host,
    cancel: &'a Cancel,
    /// Whether a text's bits may not depend on the texts beside it.
    deterministic: bool,
}

impl fmt::Debug for WebGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebGpu").finish_non_exhaustive()
    }
}

impl EngineFactory for WebGpu {
    fn name(&self) -> &'static str {
        ENGINE
    }

    fn probe(&self) -> Probe {
        // Whether there is an adapter is known when one has answered, which takes its time.
        Probe::Available {
            version: version(),
            providers: vec![PROVIDED.to_owned()],
        }
    }

    fn check(&self, _config: &EngineConfig) -> Result<()> {
        Ok(())
    }

    fn load<'a>(
        &'a self,
        bundle: &'a ModelBundle,
        config: &'a EngineConfig,
        cancel: &'a Cancel,
    ) -> EngineFuture<'a, Arc<dyn Engine>> {
        Box::pin(async move {
            let engine = self.load_model(bundle, config, cancel).await?;
            Ok(Arc::new(engine) as Arc<dyn Engine>)
        })
    }
}

/// What [`ProviderInfo`] calls it.
const PROVIDED: &str = "WebGPU";

fn version() -> String {
    concat!("isovec ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// A model, loaded.
#[derive(Debug)]
pub struct GpuEngine {
    model: Model,
    description: ModelDescription,
    capabilities: Capabilities,
    provider: ProviderInfo,
    effective: EffectiveConfig,
    counters: Counters,
    buffers: BufferPool,
    /// Whether the vectors of its check were cached at an earlier start.
    check_recalled: bool,
}

impl GpuEngine {
    /// `f16`: whether that was asked for; `whole`: why it does not compute in it all the same.
    fn new(
        model: Model,
        description: ModelDescription,
        (config, f16): (&EngineConfig, Option<bool>),
        check_recalled: bool,
        whole: Option<String>,
    ) -> Self {
        #[cfg(feature = "faults")]
        crate::faults::register(&model.device);
        let mut capabilities = Capabilities::default();
        capabilities.ragged = true;
        capabilities.cancels_running = true;
        // One is put together while the device works on another.
        capabilities.concurrent_runs = 2;
        capabilities.max_batch_tokens = Some(model.most_tokens);
        // Every sum has its order, whatever the companions; another kernel may round otherwise.
        let varies = model.tuning.varies();
        capabilities.deterministic = !varies;
        if model.limits.half {
            capabilities.precision = Precision::F16;
        }
        let provider = ProviderInfo::new(
            ENGINE,
            PROVIDED,
            format!("{} ({})", version(), device::name(&model.device.info)),
        );
        tracing::debug!(%provider, dispatches = model.dispatches(), "loaded a model");
        Self {
            description,
            capabilities,
            provider,
            effective: settings::effective(config, f16, model.limits.half, whole, varies),
            counters: Counters::default(),
            check_recalled,
            buffers: BufferPool::new(PoolLimits::of(&config.memory)),
            model,
        }
    }

    /// Takes the device away, as the reset of a driver does, for tests of the consequences.
    pub fn lose_device(&self) {
        self.model.device.destroy();
    }
}

impl Engine for GpuEngine {
    fn provider(&self) -> &ProviderInfo {
        &self.provider
    }

    fn description(&self) -> &ModelDescription {
        &self.description
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn effective(&self) -> &EffectiveConfig {
        &self.effective
    }

    fn stats(&self) -> EngineStats {
        let mut stats = EngineStats::default();
        self.counters.read(&mut stats);
        stats.sessions.count = 1;
        stats.memory_pool = self.buffers.stats();
        stats.io_binding.fallback = Some("padding is left out while inputs are copied".into());
        let counts = &self.model.counts;
        stats.io_binding.to_device_bytes = counts.up.load(Relaxed);
        stats.io_binding.from_device_bytes = counts.down.load(Relaxed);
        stats.provider.engine.clone_from(&self.provider.engine);
        stats.provider.selected.clone_from(&self.provider.provider);
        let info = &self.model.device.info;
        let mut gpu = GpuStats::default();
        gpu.adapter = device::name(info).to_owned();
        gpu.backend = info.backend.to_string();
        gpu.software = info.device_type == wgpu::DeviceType::Cpu;
        gpu.dispatches_per_run = self.model.dispatches();
        gpu.dispatches = counts.dispatches.load(Relaxed);
        gpu.submissions = counts.submissions.load(Relaxed);
        gpu.pipelines = counts.pipelines.load(Relaxed);
        gpu.arena_bytes = counts.arena.load(Relaxed);
        gpu.weight_bytes = self.model.weight_bytes();
        gpu.f16 = self.model.limits.half;
        gpu.subgroups = self.model.limits.subgroups.is_some();
        gpu.check_recalled = self.check_recalled;
        let from = self.model.tuning.from;
        gpu.tuned = from != tuning::From::Rule;
        gpu.tuning_recalled = from == tuning::From::Recalled;
        let timer = self.model.timer.as_ref();
        gpu.timestamps = timer.is_some();
        gpu.kernels = timer.map(Timer::stats).unwrap_or_default();
        stats.gpu = Some(gpu);
        stats
    }

    fn alloc(&self, dtype: DType, shape: &[usize]) -> Result<Tensor> {
        let started = Instant::now();
        let (tensor, reused) = self.buffers.take(dtype, shape)?;
        self.counters.buffer(started.elapsed(), reused);
        Ok(tensor)
    }

    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput> {
        Box::pin(async move {
            cancel.check()?;
            batch.check(&self.description)?;
            let prepared = self.model.prepare(&batch)?;
            let asked = Instant::now();
            let mut started = asked;
            let mut waiting = batch.scope.span(Stage::Wait);
            let mut running = Span::default();
            let begun = || {
                drop(std::mem::take(&mut waiting));
                running = batch.scope.span(Stage::Run);
                started = Instant::now();
                self.counters.waited(started - asked);
                running.scope().clone()
            };
            let tuning = &self.model.tuning;
            let result = self.model.run(&prepared, tuning, begun, cancel).await;
            self.counters.ran(started.elapsed(), Ended::of(&result));
            drop(running);
            let outputs = result?;
            for input in &batch.inputs {
                self.counters.input(input.tensor.byte_len());
            }
            for (_, _, values) in &outputs {
                self.counters.output(size_of_val(&values[..]));
            }
            batch.answer(outputs)
        })
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        pollster::block_on(self.run(batch, cancel))
    }

    #[cfg(target_arch = "wasm32")]
    fn run_blocking(&self, _batch: Batch, _cancel: &Cancel) -> Result<RunOutput> {
        Err(EngineError::Runtime {
            engine: ENGINE,
            doing: "running a batch",
            detail:
                "a browser's GPU answers through the event loop, which a blocking call holds up"
                    .into(),
        })
    }
}
