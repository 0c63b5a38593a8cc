//! What the tests share: seeded models, and an engine on whatever adapter there is.
#![allow(dead_code, reason = "every test file uses some of it")]

#[path = "../../../graph/tests/support/mod.rs"]
pub(crate) mod support;

use std::collections::BTreeMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::{EngineConfig, ExecutionProvider};
use isovec_engine::convert::convert;
use isovec_engine::engine::{Batch, Engine};
use isovec_engine::head::{HeadSpec, MASK, Pooling, attach_head};
use isovec_engine::tensor::{NamedTensor, Tensor};
use isovec_engine::weights::WeightsIdentity;
use isovec_gpu::{Alone, GpuEngine, WebGpu};
use support::checkpoint::{Checkpoint, Stored};
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

pub(crate) fn bundle(model: &Checkpoint, stored: Stored, pooling: Pooling) -> ModelBundle {
    let converted = convert(&model.config_json(), model.tensor_set(stored)).unwrap();
    let mut bundle = ModelBundle {
        graph: converted.graph,
        weights: converted.weights,
        identity: WeightsIdentity("test".into()),
        files: BTreeMap::new(),
        model_file: "model.safetensors".into(),
        origin: "a model of the tests".into(),
    };
    attach_head(&mut bundle, &HeadSpec::new(pooling, true)).unwrap();
    bundle
}

pub(crate) fn load(bundle: &ModelBundle) -> GpuEngine {
    pollster::block_on(factory().load_model(bundle, &config(), &Cancel::new())).unwrap()
}

pub(crate) fn batch(engine: &GpuEngine, texts: &[Text], padding: i64) -> Batch {
    let length = texts.iter().map(|(ids, _)| ids.len()).max().unwrap();
    let tensor = |name: &str, row: &dyn Fn(&Text) -> Vec<i64>, with: i64| {
        let mut values = Vec::new();
        for text in texts {
            let mut row = row(text);
            row.resize(length, with);
            values.extend(row);
        }
        let tensor = Tensor::from_slice(&[texts.len(), length], &values).unwrap();
        NamedTensor::new(name, tensor)
    };
    let all = [
        tensor("input_ids", &|(ids, _)| ids.clone(), padding),
        tensor("token_type_ids", &|(_, types)| types.clone(), 0),
        tensor(MASK, &|(ids, _)| vec![1; ids.len()], 0),
    ];
    let wanted = &engine.description().inputs;
    Batch {
        inputs: all
            .into_iter()
            .filter(|tensor| wanted.iter().any(|input| *input.name == *tensor.name))
            .collect(),
        row_lengths: texts.iter().map(|(ids, _)| ids.len()).collect(),
        ..Batch::default()
    }
}

pub(crate) fn run(engine: &GpuEngine, batch: Batch) -> Vec<f32> {
    let output = engine.run_blocking(batch, &Cancel::new()).unwrap();
    output.outputs[0].tensor.as_slice::<f32>().unwrap().to_vec()
}
