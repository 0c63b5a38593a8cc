//! A device that is lost, by an engine that says so: a real one cannot be had here. What takes
//! its place is real.

use std::path::Path;

use isovec_engine::bundle::BundleOptions;
use isovec_engine::description::ModelDescription;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::{Batch, Capabilities, ProviderInfo, RunOutput};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::stats::EngineStats;

use super::*;
use crate::model::{Purpose, prepare};
use crate::{Embedder, EmbeddingConfig};

/// Loses its device at every run.
#[derive(Debug)]
struct Losing {
    provider: ProviderInfo,
    description: ModelDescription,
    capabilities: Capabilities,
    effective: EffectiveConfig,
}

impl Engine for Losing {
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
        EngineStats::default()
    }

    fn run<'a>(&'a self, batch: Batch, cancel: &'a Cancel) -> EngineFuture<'a, RunOutput> {
        Box::pin(async move { self.run_blocking(batch, cancel) })
    }

    fn run_blocking(&self, _batch: Batch, _cancel: &Cancel) -> Result<RunOutput> {
        Err(EngineError::DeviceLost {
            provider: "CUDA".into(),
            detail: "it fell off the bus".into(),
        })
    }
}

fn tiny() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-bert")
}

/// The tiny model's embedder, with an engine in front of the real one that loses its device.
fn losing(strict: bool) -> Embedder {
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::Portable)
        .build()
        .unwrap();
    let embedder = backend::wait(Embedder::load(tiny(), config.clone())).unwrap();
    let mut model = Arc::into_inner(embedder.model).unwrap();
    let real = model.engines.current();
    let lost = Loaded {
        engine: Arc::new(Losing {
            provider: ProviderInfo::new("onnxruntime", "CUDA", "1"),
            description: real.description().clone(),
            capabilities: Capabilities::default(),
            effective: EffectiveConfig::default(),
        }),
        provider: ExecutionProvider::Cuda,
        why: "of the tests".into(),
    };
    let purpose = Purpose::run(&config);
    let cancel = Cancel::new();
    let files = backend::wait(prepare(tiny().into(), &config, purpose, &cancel)).unwrap();
    model.engines = Engines {
        first: lost,
        spare: (!strict).then(|| Spare {
            bundle: files.bundle,
            config: config.runtime.clone(),
            rest: vec![ExecutionProvider::Cpu],
        }),
        second: OnceLock::new(),
        loading: lock::Mutex::new(()),
        events: Mutex::default(),
    };
    Embedder {
        model: Arc::new(model),
    }
}

fn expected() -> crate::Embeddings {
    let config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
    let embedder = backend::wait(Embedder::load(tiny(), config)).unwrap();
    backend::wait(embedder.embed(["one text", "and another"])).unwrap()
}

#[test]
fn a_lost_device_is_replaced_once_and_no_text_is_lost() {
    let embedder = losing(false);
    assert_eq!(embedder.provider().provider, "CUDA");
    // Several at once: all notice the loss, one loads.
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let embedder = embedder.clone();
            std::thread::spawn(move || backend::wait(embedder.embed(["one text", "and another"])))
        })
        .collect();
    let expected = expected();
    for call in calls {
        let embeddings = call.join().unwrap().unwrap();
        assert_eq!(embeddings.as_slice(), expected.as_slice());
    }
    assert_eq!(embedder.provider().engine, "portable");
    let stats = embedder.stats();
    assert_eq!(stats.engine.provider.fallbacks.len(), 1);
    let event = &stats.engine.provider.fallbacks[0];
    assert_eq!((event.from.as_str(), event.to.as_str()), ("cuda", "cpu"));
    assert!(event.cause.contains("fell off the bus"), "{}", event.cause);
}

#[test]
fn the_blocking_handle_is_saved_as_well() {
    let embedder = crate::blocking::Embedder::from(losing(false));
    let embeddings = embedder.embed(["one text", "and another"]).unwrap();
    assert_eq!(embeddings.as_slice(), expected().as_slice());
    assert_eq!(embedder.stats().engine.provider.fallbacks.len(), 1);
}

#[test]
fn where_nothing_may_take_its_place_the_loss_is_an_error() {
    let embedder = losing(true);
    let error = backend::wait(embedder.embed(["one text"])).unwrap_err();
    assert_eq!(error.kind(), "DeviceLost");
    assert!(embedder.stats().engine.provider.fallbacks.is_empty());
}

#[test]
fn a_chain_ends_where_something_works_and_says_what_did_not() {
    let mut config = EngineConfig::default();
    config.engine = EngineChoice::Portable;
    config.providers.execution_providers = vec![ExecutionProvider::WebGpu, ExecutionProvider::Cpu];
    let options = BundleOptions::default();
    let bundle = ModelBundle::from_folder(tiny(), &options).unwrap();
    check(&config).unwrap();
    let engines = backend::wait(Engines::load(&bundle, &config, &Cancel::new())).unwrap();
    assert_eq!(engines.provider(), ExecutionProvider::Cpu);
    let events = engines.events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].from.as_str(), events[0].to.as_str()),
        ("webgpu", "cpu")
    );

    config.providers.strict_providers = Some(true);
    assert_eq!(check(&config).unwrap_err().kind(), "ProviderUnavailable");
    let error = backend::wait(Engines::load(&bundle, &config, &Cancel::new())).unwrap_err();
    assert_eq!(error.kind(), "ProviderUnavailable");
}
