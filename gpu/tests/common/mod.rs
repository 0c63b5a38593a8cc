//! What the tests share: seeded models, and an engine on whatever adapter there is.
#![allow(dead_code, reason = "every test file uses some of it")]

#[path = "../../../graph/tests/support/mod.rs"]
pub(crate) mod support;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::{EngineConfig, ExecutionProvider};
use isovec_engine::engine::{Batch, Engine};
use isovec_gpu::{Alone, GpuEngine, WebGpu};
use support::texts::Text;

pub(crate) fn factory() -> WebGpu {
    WebGpu::new(Box::new(Alone))
}

/// The tests' machine has a processor that plays a GPU, if anything.
pub(crate) fn config() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.providers.execution_providers = vec![ExecutionProvider::WebGpu];
    config.providers.webgpu.software_adapter = Some(true);
    config
}

pub(crate) fn load(bundle: &ModelBundle) -> GpuEngine {
    pollster::block_on(factory().load_model(bundle, &config(), &Cancel::new())).unwrap()
}

/// The texts in a batch with the inputs that the model reads.
pub(crate) fn batch(engine: &GpuEngine, texts: &[Text], padding: i64) -> Batch {
    let mut batch = support::texts::batch(texts, padding);
    let wanted = &engine.description().inputs;
    let reads = |name: &str| wanted.iter().any(|input| *input.name == *name);
    batch.inputs.retain(|input| reads(&input.name));
    batch
}

pub(crate) fn run(engine: &GpuEngine, batch: Batch) -> Vec<f32> {
    let output = engine.run_blocking(batch, &Cancel::new()).unwrap();
    output.outputs[0].tensor.as_slice::<f32>().unwrap().to_vec()
}
