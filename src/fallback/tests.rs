//! Tests with an engine that reports a lost device, because no real device can be lost here. The replacement is real.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use isovec_engine::description::ModelDescription;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::{Batch, Capabilities, ProviderInfo, RunOutput};
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::stats::EngineStats;
use isovec_model::bundle::{self, BundleOptions};

use super::*;
use crate::model::{Output, Purpose, prepare};
use crate::{Embedder, EmbeddingConfig};

/// Loses its device at its next runs, so many, and is a real one afterwards.
#[derive(Debug)]
struct Losing {
    left: AtomicUsize,
    real: Arc<dyn Engine>,
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

    fn run_blocking(&self, batch: Batch, cancel: &Cancel) -> Result<RunOutput> {
        let left = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(SeqCst, SeqCst, left).is_err() {
            return self.real.run_blocking(batch, cancel);
        }
        Err(EngineError::DeviceLost {
            provider: "CUDA".into(),
            detail: "it fell off the bus".into(),
        })
    }
}

fn tiny() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tiny-bert")
}

/// What loses its device so many times.
fn loses(times: usize, real: &Arc<dyn Engine>) -> Loaded {
    Loaded {
        engine: Arc::new(Losing {
            left: AtomicUsize::new(times),
            real: Arc::clone(real),
            provider: ProviderInfo::new("onnxruntime", "CUDA", "1"),
            description: real.description().clone(),
            capabilities: Capabilities::default(),
            effective: EffectiveConfig::default(),
        }),
        provider: ExecutionProvider::Cuda,
        why: "of the tests".into(),
    }
}

/// The tiny model's embedder, with an engine in front of the real one that loses its device.
fn losing(strict: bool) -> Embedder {
    let config = EmbeddingConfig::default()
        .with_engine(EngineChoice::Portable)
        .build()
        .unwrap();
    let embedder = backend::wait(Embedder::builder(tiny()).config(config.clone()).load()).unwrap();
    let mut model = Arc::into_inner(embedder.model).unwrap();
    let lost = loses(usize::MAX, model.engines.current());
    let purpose = Purpose::run(&config, Output::Vectors);
    let cancel = Cancel::new();
    let files = backend::wait(prepare(tiny().into(), &config, purpose, &cancel)).unwrap();
    model.engines = Engines {
        first: lost,
        spare: (!strict).then(|| Spare {
            bundle: files.bundle,
            config: config.runtime.clone(),
            rest: vec![ExecutionProvider::Cpu],
        }),
        beside: None,
        losses: Losses::default(),
        events: Mutex::default(),
    };
    Embedder {
        model: Arc::new(model),
    }
}

fn expected() -> crate::Embeddings {
    let config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
    let embedder = backend::wait(Embedder::builder(tiny()).config(config).load()).unwrap();
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

/// A batch goes on until something computes it, or there is nothing more.
#[test]
fn what_takes_a_lost_devices_place_may_be_lost_as_well() {
    for (times, is_saved) in [(1, true), (5, true), (usize::MAX, false)] {
        let embedder = || {
            let mut model = Arc::into_inner(losing(false).model).unwrap();
            let config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
            let real = backend::wait(Embedder::builder(tiny()).config(config).load()).unwrap();
            let next = loses(times, real.model.engines.current());
            model.engines.beside = Some(Beside::new(next, 0));
            Embedder {
                model: Arc::new(model),
            }
        };
        let texts = ["one text", "and another"];
        let waited = backend::wait(embedder().embed(texts));
        let blocked = crate::blocking::Embedder::from(embedder()).embed(texts);
        for found in [waited, blocked] {
            match found {
                Ok(found) => {
                    assert!(is_saved, "{times}");
                    assert_eq!(found.as_slice(), expected().as_slice());
                }
                Err(error) => assert!(!is_saved && error.kind() == "DeviceLost", "{error}"),
            }
        }
    }
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
    let mut config = RuntimeConfig {
        engine: EngineChoice::Portable,
        ..RuntimeConfig::default()
    };
    config.providers.execution_providers = vec![ExecutionProvider::WebGpu, ExecutionProvider::Cpu];
    let options = BundleOptions::default();
    let bundle = bundle::from_folder(tiny(), &options).unwrap();
    check(&config).unwrap();
    let engines = backend::wait(Engines::load(&bundle, &config, &Cancel::new())).unwrap();
    if engines.provider() == ExecutionProvider::WebGpu {
        return eprintln!("not run: this machine has a GPU");
    }
    assert_eq!(engines.provider(), ExecutionProvider::Cpu);
    let events = engines.events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].from.as_str(), events[0].to.as_str()),
        ("webgpu", "cpu")
    );

    config.providers.strict_providers = Some(true);
    let error = backend::wait(Engines::load(&bundle, &config, &Cancel::new())).unwrap_err();
    assert_eq!(error.kind(), "ProviderUnavailable");
}

/// The tiny model on this machine's adapter, and what takes its device away. `None`, aloud, where
/// there is no adapter; `ISOVEC_REQUIRE_GPU=1` makes that a failure.
#[cfg(feature = "webgpu")]
fn on_a_gpu(rest: Vec<ExecutionProvider>) -> Option<(Embedder, Arc<isovec_gpu::GpuEngine>)> {
    on_a_gpu_with(&tiny(), rest, false, false)
}

/// The same with any model, with 16-bit arithmetic, and with kernels that share by subgroups.
#[cfg(feature = "webgpu")]
fn on_a_gpu_with(
    folder: &Path,
    rest: Vec<ExecutionProvider>,
    f16: bool,
    subgroups: bool,
) -> Option<(Embedder, Arc<isovec_gpu::GpuEngine>)> {
    let mut config = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
    config.runtime.providers.execution_providers = vec![ExecutionProvider::WebGpu];
    config.runtime.providers.webgpu.software_adapter = Some(true);
    config.runtime.providers.webgpu.f16 = Some(f16);
    let config = config.build().unwrap();
    let cancel = Cancel::new();
    let files = prepare(
        folder.into(),
        &config,
        Purpose::run(&config, Output::Vectors),
        &cancel,
    );
    let bundle = backend::wait(files).unwrap().bundle;
    let loaded = backend::webgpu_model(subgroups, &bundle, &config.runtime, &cancel);
    let engine = match backend::wait(loaded) {
        Ok(engine) => Arc::new(engine),
        Err(error) if std::env::var("ISOVEC_REQUIRE_GPU").is_ok_and(|must| must == "1") => {
            panic!("{error}")
        }
        Err(error) => {
            eprintln!("not run: {error}");
            return None;
        }
    };
    let portable = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
    let embedder = backend::wait(Embedder::builder(folder).config(portable).load()).unwrap();
    let mut model = Arc::into_inner(embedder.model).unwrap();
    let shared: Arc<dyn Engine> = Arc::clone(&engine) as _;
    model.engines = Engines {
        first: Loaded {
            engine: shared,
            provider: ExecutionProvider::WebGpu,
            why: "of the tests".into(),
        },
        beside: None,
        spare: Some(Spare {
            bundle,
            config: config.runtime.clone(),
            rest,
        }),
        losses: Losses::default(),
        events: Mutex::default(),
    };
    let embedder = Embedder {
        model: Arc::new(model),
    };
    Some((embedder, engine))
}

#[cfg(feature = "webgpu")]
fn same(found: &crate::Embeddings) {
    let apart = found.as_slice().iter().zip(expected().as_slice().to_vec());
    let apart = apart.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart <= 2e-6, "{apart}");
}

#[cfg(feature = "webgpu")]
#[test]
fn a_lost_gpu_is_replaced_by_the_processor_and_comes_back() {
    let Some((embedder, engine)) = on_a_gpu(vec![ExecutionProvider::Cpu]) else {
        return;
    };
    let embed = || backend::wait(embedder.embed(["one text", "and another"])).unwrap();
    same(&embed());
    assert_eq!(embedder.provider().provider, "WebGPU");
    engine.lose_device();
    same(&embed());
    assert_eq!(embedder.provider().engine, "portable");
    // It is left alone for a while, and then opened anew.
    same(&embed());
    assert_eq!(embedder.provider().engine, "portable");
    embedder.model.engines.losses.expire();
    same(&embed());
    assert_eq!(embedder.provider().provider, "WebGPU");
    let stats = embedder.stats().engine;
    let events = stats.provider.fallbacks.iter();
    let events: Vec<_> = events.map(|e| (e.from.as_str(), e.to.as_str())).collect();
    assert_eq!(events, [("webgpu", "cpu"), ("cpu", "webgpu")]);
    assert_eq!(stats.gpu.unwrap().recreated, 1);
}

#[cfg(feature = "webgpu")]
#[test]
fn a_lost_gpu_that_nothing_stands_behind_is_opened_anew() {
    let Some((embedder, engine)) = on_a_gpu(Vec::new()) else {
        return;
    };
    engine.lose_device();
    same(&backend::wait(embedder.embed(["one text", "and another"])).unwrap());
    assert_eq!(embedder.provider().provider, "WebGPU");
    assert_eq!(embedder.stats().engine.gpu.unwrap().recreated, 1);
}

/// Small batches go to the processor, large ones to the GPU, with the same vectors.
#[cfg(feature = "webgpu")]
#[test]
fn the_processor_takes_small_batches() {
    let Some((embedder, _)) = on_a_gpu(vec![ExecutionProvider::Cpu]) else {
        return;
    };
    let portable = EmbeddingConfig::default().with_engine(EngineChoice::Portable);
    let portable = backend::wait(Embedder::builder(tiny()).config(portable).load()).unwrap();
    let portable = Arc::into_inner(portable.model).unwrap().engines.first;
    let mut model = Arc::into_inner(embedder.model).unwrap();
    model.engines.beside = Some(Beside::new(portable, 9));
    let embedder = Embedder {
        model: Arc::new(model),
    };
    backend::wait(embedder.embed(["one"])).unwrap();
    let stats = embedder.stats().engine.provider;
    assert_eq!((stats.beside.unwrap().batches, stats.runs), (1, 0));
    let texts = ["many words make a large batch, larger than nine tokens"];
    backend::wait(embedder.embed(texts)).unwrap();
    let stats = embedder.stats().engine.provider;
    assert_eq!((stats.beside.unwrap().batches, stats.runs), (1, 1));
}

/// What a lost device was computing in f16 is computed in f32, which is nearer.
#[cfg(feature = "webgpu")]
#[test]
fn a_gpu_in_f16_that_is_lost_is_replaced_in_f32() {
    let rest = vec![ExecutionProvider::Cpu];
    let Some((embedder, engine)) = on_a_gpu_with(&tiny(), rest, true, false) else {
        return;
    };
    if !embedder.stats().engine.gpu.is_some_and(|gpu| gpu.f16) {
        return eprintln!("not run: the adapter has no f16");
    }
    let embed = || backend::wait(embedder.embed(["one text", "and another"])).unwrap();
    let apart = |found: &crate::Embeddings| {
        let expected = expected();
        let rows = found.iter().zip(expected.iter());
        let l2 = rows.map(|(a, b)| {
            let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
            squares.sum::<f64>().sqrt()
        });
        l2.fold(0.0, f64::max)
    };
    let small = apart(&embed());
    assert!(small > 1e-5 && small <= 5e-3, "{small:e}");
    engine.lose_device();
    same(&embed());
    assert_eq!(embedder.provider().engine, "portable");
    embedder.model.engines.losses.expire();
    assert_eq!(apart(&embed()), small, "the device is back, and in f16");
}

/// Which of them a device gets is decided by its adapter: here both are held to the suite's bounds.
#[cfg(feature = "webgpu")]
#[test]
fn a_gpu_keeps_the_bounds_by_subgroups_as_well() {
    use isovec_parity::{BOUNDS, BOUNDS_F16, Deviation, Reference};

    let minilm = std::env::var_os("ISOVEC_TEST_MODEL").map_or_else(
        || crate::cache_dir().map(|cache| cache.join("models/all-MiniLM-L6-v2")),
        |folder| Some(folder.into()),
    );
    let minilm = minilm.filter(|folder| folder.join("model.safetensors").is_file());
    let mut models = vec![(tiny(), Reference::tiny())];
    // A processor that plays a GPU takes its time.
    models.extend(minilm.map(|folder| (folder, Reference::minilm().some(20))));
    for (folder, reference) in models {
        for f16 in [false, true] {
            let Some((embedder, _)) = on_a_gpu_with(&folder, Vec::new(), f16, true) else {
                return;
            };
            let gpu = embedder.stats().engine.gpu.unwrap();
            if (gpu.f16, gpu.subgroups) != (f16, true) {
                eprintln!("not run: {} has no subgroups, or no f16", gpu.adapter);
                continue;
            }
            let found = backend::wait(embedder.embed(&reference.texts)).unwrap();
            let wanted = (0..reference.texts.len()).map(|row| reference.vector(row));
            let apart = Deviation::between(found.iter(), wanted);
            println!("{}, f16 {f16}: {apart}", folder.display());
            let bounds = if f16 { &BOUNDS_F16 } else { &BOUNDS };
            assert!(apart.within(bounds), "{apart}, allowed {bounds}");
        }
    }
}
