//! Resolves the chain of providers: the first provider that works computes, and every failed one before it is
//! recorded. A device that is lost during work is replaced, and used again when it is back. Beside a GPU, the
//! processor may take the batches that it computes faster.

mod auto;
mod beside;
mod choose;
mod loss;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Engine, EngineFactory, Probe, ProviderInfo};
use isovec_engine::stats::{EngineStats, Fallback};
use isovec_model::precision::expanded;

use crate::backend;
use crate::config::{EngineChoice, ExecutionProvider, RuntimeConfig};
use beside::Beside;
use choose::{Chosen, choose, replaceable};
use loss::Losses;

type Result<T> = std::result::Result<T, EngineError>;

/// The engine that computes, and what takes its place if its device is lost.
pub(crate) struct Engines {
    first: Loaded,
    /// The engine for small batches.
    beside: Option<Beside>,
    spare: Option<Spare>,
    losses: Losses,
    events: Mutex<Vec<Fallback>>,
}

/// An engine and what it is.
#[derive(Clone)]
struct Loaded {
    engine: Arc<dyn Engine>,
    provider: ExecutionProvider,
    why: String,
}

/// What it takes to load the model once more.
struct Spare {
    bundle: ModelBundle,
    config: RuntimeConfig,
    rest: Vec<ExecutionProvider>,
}

impl Engines {
    /// Loads the model into the first engine of the chain that works.
    pub(crate) async fn load(
        bundle: &ModelBundle,
        config: &RuntimeConfig,
        cancel: &Cancel,
    ) -> Result<Self> {
        let bundle = &expanded(bundle);
        let mut config = config.clone();
        let (mut why, mut small) = (None, None);
        if config.providers.provider_auto_selection == Some(true) {
            let ranked = auto::rank(bundle, &config, cancel).await?;
            config = ranked.config;
            why = Some(ranked.why);
            small = ranked.small;
        }
        let chain = config.providers.chain().to_vec();
        let mut events = Vec::new();
        let (mut loaded, rest) = first(bundle, &config, &chain, cancel, &mut events).await?;
        if let Some(why) = why {
            loaded.why = why;
        }
        let beside = match small {
            Some(small) if loaded.provider == ExecutionProvider::WebGpu => {
                Some(Beside::load(bundle, &config, small, cancel).await?)
            }
            _ => None,
        };
        let can_be_lost = loaded.provider == ExecutionProvider::WebGpu
            || loaded.provider != ExecutionProvider::Cpu && !rest.is_empty();
        let spare = (can_be_lost && !config.providers.strict()).then(|| Spare {
            bundle: bundle.clone(),
            config,
            rest,
        });
        Ok(Self {
            first: loaded,
            beside,
            spare,
            losses: Losses::default(),
            events: Mutex::new(events),
        })
    }

    /// An engine that nothing replaces.
    #[cfg(test)]
    pub(crate) fn only(engine: Arc<dyn Engine>) -> Self {
        Self {
            first: Loaded {
                engine,
                provider: ExecutionProvider::Cpu,
                why: "of the tests".into(),
            },
            beside: None,
            spare: None,
            losses: Losses::default(),
            events: Mutex::default(),
        }
    }

    /// An engine, and one that takes its place when its device is lost.
    #[cfg(test)]
    pub(crate) fn with_beside(
        first: Arc<dyn Engine>,
        beside: Arc<dyn Engine>,
        bundle: ModelBundle,
    ) -> Self {
        Self {
            beside: Some(Beside::new(Self::only(beside).first, 0)),
            spare: Some(Spare {
                bundle,
                config: RuntimeConfig::default(),
                rest: Vec::new(),
            }),
            ..Self::only(first)
        }
    }

    /// The engine that computes now.
    pub(crate) fn current(&self) -> &Arc<dyn Engine> {
        &self.loaded().engine
    }

    /// The engine that computes now, where it is the one that the model was loaded with, or that one's device opened anew.
    pub(crate) fn as_first(&self) -> Option<&Arc<dyn Engine>> {
        let (now, first) = (self.current(), &self.first.engine);
        let same = Arc::ptr_eq(now, first)
            || now.provider() == first.provider()
                && now.capabilities().precision == first.capabilities().precision
                && device(&**now) == device(&**first);
        same.then_some(now)
    }

    /// Who computes small batches, where that is somebody else.
    pub(crate) fn beside(&self) -> Option<&ProviderInfo> {
        let beside = self.beside.as_ref();
        beside.map(|beside| beside.loaded.engine.provider())
    }

    /// What it computes on.
    pub(crate) fn provider(&self) -> ExecutionProvider {
        self.loaded().provider
    }

    /// Why it is this one.
    pub(crate) fn why(&self) -> &str {
        &self.loaded().why
    }

    /// Every time that something else was tried first, or lost.
    pub(crate) fn events(&self) -> Vec<Fallback> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The engine for a batch of so many tokens.
    pub(crate) fn for_tokens(&self, tokens: usize) -> &Arc<dyn Engine> {
        let current = self.current();
        match &self.beside {
            Some(beside) if Arc::ptr_eq(current, &self.first.engine) => {
                beside.takes(tokens).unwrap_or(current)
            }
            _ => current,
        }
    }

    /// What the engine did, and the one beside it.
    pub(crate) fn stats(&self) -> EngineStats {
        let mut stats = self.current().stats();
        stats.provider.fallbacks = self.events();
        stats.provider.beside = self.beside.as_ref().map(Beside::stats);
        if let Some(gpu) = &mut stats.gpu {
            gpu.recreated = self.losses.recovered();
        }
        stats
    }

    fn loaded(&self) -> &Loaded {
        self.losses.latest().unwrap_or(&self.first)
    }

    fn record(&self, event: Fallback) {
        tracing::warn!(target: "isovec", from = event.from, to = event.to, "{}", event.cause);
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
    }
}

impl fmt::Debug for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engines")
            .field("engine", self.current())
            .field("provider", &self.provider())
            .field("events", &self.events())
            .finish_non_exhaustive()
    }
}

/// Refuses what no model could make work, before one is touched.
pub(crate) fn check(config: &RuntimeConfig) -> Result<()> {
    let chain = config.providers.chain();
    for provider in chain {
        // What a chain can go past is reported when the model is loaded.
        if chain.len() > 1 && !config.providers.strict() && *provider != ExecutionProvider::Cpu {
            continue;
        }
        match *provider {
            ExecutionProvider::Cpu => check_cpu(config)?,
            other => factory(config, other)?.check(&config.of_every_engine())?,
        }
    }
    Ok(())
}

fn check_cpu(config: &RuntimeConfig) -> Result<()> {
    let told = config.of_every_engine();
    let onnxruntime = backend::onnxruntime(config, ExecutionProvider::Cpu);
    match (config.engine, onnxruntime) {
        (EngineChoice::Portable, _) | (EngineChoice::Auto, Err(_)) => {
            backend::portable().check(&told)
        }
        (EngineChoice::Auto, Ok(onnxruntime))
            if config.onnxruntime_library.is_none()
                && matches!(onnxruntime.probe(), Probe::Unavailable { .. }) =>
        {
            backend::portable().check(&told)
        }
        (_, Ok(onnxruntime)) => onnxruntime.check(&told),
        // Said when the model is loaded, with what to do.
        (_, Err(_)) => Ok(()),
    }
}

/// Loads the model into the first engine of a chain that works; what is behind it comes back.
async fn first(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    chain: &[ExecutionProvider],
    cancel: &Cancel,
    events: &mut Vec<Fallback>,
) -> Result<(Loaded, Vec<ExecutionProvider>)> {
    let mut missed: Vec<(ExecutionProvider, String)> = Vec::new();
    for (at, &provider) in chain.iter().enumerate() {
        let rest = &chain[at + 1..];
        match load_one(bundle, config, provider, cancel).await {
            Ok(chosen) => {
                for (from, cause) in missed {
                    let event = Fallback::new(from.name(), provider.name(), cause);
                    tracing::warn!(target: "isovec", from = event.from, to = event.to, "{}", event.cause);
                    events.push(event);
                }
                events.extend(chosen.fallback);
                let loaded = Loaded {
                    engine: chosen.engine,
                    provider,
                    why: chosen.why,
                };
                return Ok((loaded, rest.to_vec()));
            }
            Err(error) if rest.is_empty() || config.providers.strict() || !replaceable(&error) => {
                return Err(error);
            }
            Err(error) => missed.push((provider, error.to_string())),
        }
    }
    Err(EngineError::Config(vec![
        "providers.execution_providers names nothing to compute on".into(),
    ]))
}

async fn load_one(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    provider: ExecutionProvider,
    cancel: &Cancel,
) -> Result<Chosen> {
    if provider == ExecutionProvider::Cpu {
        return choose(bundle, config, cancel).await;
    }
    let factory = factory(config, provider)?;
    let told = config.of_every_engine();
    factory.check(&told)?;
    Ok(Chosen {
        engine: factory.load(bundle, &told, cancel).await?,
        why: format!("it has the provider {provider}"),
        fallback: None,
    })
}

/// The engine that has a provider other than the processor.
fn factory(config: &RuntimeConfig, provider: ExecutionProvider) -> Result<Arc<dyn EngineFactory>> {
    let unavailable = |reason: String| EngineError::ProviderUnavailable {
        provider: provider.name().into(),
        reason,
        hint: "Leave it out of providers.execution_providers".into(),
    };
    if !provider.needs_onnxruntime() {
        return backend::webgpu(config).map_err(|reason| unavailable(reason.to_owned()));
    }
    if config.engine == EngineChoice::Portable {
        return Err(unavailable("the engine `portable` was asked for".into()));
    }
    backend::onnxruntime(config, provider).map_err(|reason| unavailable(reason.to_owned()))
}

/// The device that an engine computes on; empty where it does not say.
pub(crate) fn device(engine: &dyn Engine) -> String {
    let gpu = engine.stats().gpu;
    gpu.map(|gpu| gpu.adapter).unwrap_or_default()
}

#[cfg(test)]
mod tests;
