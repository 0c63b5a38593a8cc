//! The same graphs in ONNX Runtime and in tract.

use std::io::Cursor;
use std::sync::OnceLock;

use bytes::Bytes;
use isovec_engine::Result;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{EngineFactory, Probe};
use isovec_engine::onnx::proto::{DataType, ModelProto};
use isovec_native::OnnxRuntime;
use prost::Message;
use tract_onnx::prelude::*;

use super::{Rows, batch, bundle};

/// How far a number may be from another that means the same, for each of its own size or of 1.
const NEAR: f32 = 2e-4;
/// How much a table's numbers are changed to see how much of a difference is rounding.
const SHAKEN: f32 = 1e-6;

/// Panics where nobody agrees with what was found.
pub(super) fn agree(model: &ModelProto, texts: &[Vec<i64>], found: &Rows) {
    let file = Bytes::from(model.encode_to_vec());
    let asked = texts.iter().zip(found).enumerate();
    for (at, (text, found)) in asked {
        let wanted = match there() {
            true => onnxruntime(&file, text).ok(),
            false => tract(&file, text).ok(),
        };
        // What they refuse, and what is no number there, says nothing.
        let Some(wanted) = wanted.filter(|wanted| wanted.iter().all(|value| value.is_finite()))
        else {
            continue;
        };
        let far = apart(found, &wanted);
        if far <= NEAR {
            continue;
        }
        if let Ok(other) = tract(&file, text)
            && there()
            && apart(found, &other) <= NEAR
        {
            continue; // ONNX Runtime alone says so.
        }
        let shaken = Bytes::from(shaken(model).encode_to_vec());
        if let Ok(other) = onnxruntime(&shaken, text)
            && 30.0 * apart(&other, &wanted) >= far
        {
            continue;
        }
        let operators = model.graph.iter().flat_map(|graph| &graph.node);
        let operators: Vec<_> = operators.map(|node| &*node.op_type).collect();
        panic!("text {at} is {found:?}, not {wanted:?}, in {operators:?}");
    }
}

/// The largest difference, of numbers up to 1 absolute, of others by their size.
fn apart(found: &[f32], wanted: &[f32]) -> f32 {
    if found.len() != wanted.len() {
        return f32::INFINITY;
    }
    let pairs = found.iter().zip(wanted);
    let differences = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
    differences.fold(0.0, |most: f32, own| {
        if own.is_nan() {
            f32::INFINITY
        } else {
            most.max(own)
        }
    })
}

/// The same model with tables that are a little different.
fn shaken(model: &ModelProto) -> ModelProto {
    let mut model = model.clone();
    let tensors = model
        .graph
        .iter_mut()
        .flat_map(|graph| &mut graph.initializer);
    for tensor in tensors
        .filter(|tensor| tensor.data_type == DataType::Float as i32 && tensor.dims.len() == 2)
    {
        let values = tensor.raw_data.as_chunks().0.iter().enumerate();
        let values = values.flat_map(|(at, &bytes)| {
            let sign = if at % 3 == 0 { -1.0 } else { 1.0 };
            (f32::from_le_bytes(bytes) * (1.0 + sign * SHAKEN)).to_le_bytes()
        });
        tensor.raw_data = values.collect::<Vec<u8>>().into();
    }
    model
}

fn config() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.session.intra_op_threads = Some(1);
    config.session.pool_size = Some(1);
    config
}

/// Whether there is an ONNX Runtime; says so aloud, once, where there is none.
///
/// # Panics
/// The same where `ISOVEC_REQUIRE_ONNXRUNTIME=1`.
fn there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| match OnnxRuntime::default().probe() {
        Probe::Available { .. } => true,
        other => {
            let required = std::env::var("ISOVEC_REQUIRE_ONNXRUNTIME").is_ok_and(|it| it == "1");
            assert!(!required, "{other:?}");
            eprintln!("compared with tract alone: {other:?}");
            false
        }
    })
}

fn onnxruntime(file: &Bytes, text: &[i64]) -> Result<Vec<f32>> {
    let (bundle, config, cancel) = (bundle(file)?, config(), Cancel::new());
    let factory = OnnxRuntime::default();
    let engine = pollster::block_on(factory.load(&bundle, &config, &cancel))?;
    let output = engine.run_blocking(batch(&[text.to_vec()])?, &cancel)?;
    Ok(output.outputs[0].tensor.as_slice::<f32>()?.to_vec())
}

fn tract(file: &Bytes, text: &[i64]) -> TractResult<Vec<f32>> {
    let mut model = tract_onnx::onnx().model_for_read(&mut Cursor::new(&file[..]))?;
    let shape = [1, text.len()];
    for input in 0..model.input_outlets()?.len() {
        model.set_input_fact(input, InferenceFact::dt_shape(i64::datum_type(), shape))?;
    }
    let runnable = model.into_typed()?.into_runnable()?;
    let ids = Tensor::from_shape(&shape, text)?;
    let mask = Tensor::from_shape(&shape, &vec![1_i64; text.len()])?;
    let outputs = runnable.run(tvec!(ids.into(), mask.into()))?;
    Ok(outputs[0]
        .to_plain_array_view::<f32>()?
        .iter()
        .copied()
        .collect())
}
