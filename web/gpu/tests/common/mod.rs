//! What the tests share: an engine that does the same on whatever adapter there is.
#![allow(dead_code, reason = "every test file uses some of it")]

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{Batch, Engine};
use isovec_gpu::{Alone, GpuEngine, Host, Options, WebGpu};
use isovec_test_models::texts::{self, Text};

/// Whether there is an adapter. That there is none is said, and no fault unless `ISOVEC_REQUIRE_GPU=1`.
pub(crate) fn has_adapter() -> bool {
    let must = std::env::var("ISOVEC_REQUIRE_GPU").is_ok_and(|must| must == "1");
    let has = must || !pollster::block_on(isovec_gpu::adapters()).is_empty();
    if !has {
        eprintln!("not run: there is no adapter");
    }
    has
}

pub(crate) fn factory() -> WebGpu {
    factory_of(Box::new(Alone))
}

/// Without what adapters that are GPUs have by default, and processors that play one have not.
pub(crate) fn factory_of(host: Box<dyn Host>) -> WebGpu {
    let factory = WebGpu::new(host).with_options(options()).with_tuning(false);
    factory.with_tiles(false).with_subgroups(false)
}

/// The tests' machine has a processor that plays a GPU, if anything.
pub(crate) fn options() -> Options {
    Options {
        software_adapter: true,
        ..Options::default()
    }
}

/// The same, computing in f16.
pub(crate) fn in_f16() -> Options {
    Options {
        f16: Some(true),
        ..options()
    }
}

pub(crate) fn config() -> EngineConfig {
    EngineConfig::default()
}

pub(crate) fn load(bundle: &ModelBundle) -> GpuEngine {
    pollster::block_on(factory().load_model(bundle, &config(), &Cancel::new())).unwrap()
}

/// The texts in a batch with the inputs that the model reads.
pub(crate) fn batch(engine: &GpuEngine, texts: &[Text], padding: i64) -> Batch {
    let mut batch = texts::batch(texts, padding);
    let wanted = &engine.description().inputs;
    let reads = |name: &str| wanted.iter().any(|input| *input.name == *name);
    batch.inputs.retain(|input| reads(&input.name));
    batch
}

pub(crate) fn run(engine: &GpuEngine, batch: Batch) -> Vec<f32> {
    let output = engine.run_blocking(batch, &Cancel::new()).unwrap();
    output.outputs[0].tensor.as_slice::<f32>().unwrap().to_vec()
}
