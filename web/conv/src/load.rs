//! Reads the weights of a program one at a time into the form that the kernels need.

use std::borrow::Cow;
use std::collections::HashMap;

use isovec_engine::budget::Budget;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::DataType;
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;
use isovec_engine::{EngineError, Result};
use isovec_kernels::gemm::{Kernel, Mismatch, Packed};

use crate::error::Stop;
use crate::lower::take_bytes;
use crate::node::{Conv, Layout, Weight};
use crate::value::Numbers;
use isovec_kernels::conv::Map;

/// Lists of at most this many bytes are known while the graph is read: biases, and what batch normalisations have learnt.
const SMALL_LIST: usize = 4 << 20;

/// A convolution's weights in the form in which its kernel reads them.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// A matrix for each group.
    Product {
        groups: Vec<Packed>,
        bias: Option<Vec<f32>>,
    },
    /// `[taps, channels]`.
    Depthwise { weights: Vec<f32>, bias: Vec<f32> },
}

impl Loaded {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Product { groups, bias } => {
                let bias = bias.as_ref().map_or(0, |bias| size_of_val(&bias[..]));
                groups.iter().map(Packed::bytes).sum::<usize>() + bias
            }
            Self::Depthwise { weights, bias } => size_of_val(&weights[..]) + size_of_val(&bias[..]),
        }
    }
}

/// Reads the weights that are lists, by their index.
pub(crate) async fn lists(
    bundle: &ModelBundle,
    budget: &mut Budget,
) -> Result<HashMap<usize, Numbers>> {
    let mut known = HashMap::new();
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        let several = info.shape.iter().filter(|&&extent| extent != 1).count();
        // Whoever reads another type is refused.
        let known_type = !matches!(info.dtype, DType::I8 | DType::U8 | DType::BF16);
        if several > 1 || info.byte_len() > SMALL_LIST || !known_type {
            continue;
        }
        let bytes = bundle.weights.read(index).await?;
        let data_type = DataType::from(info.dtype);
        match Numbers::of_bytes(data_type, &info.shape, &bytes, budget) {
            Ok(numbers) => known.insert(index, numbers),
            Err(Stop::Engine(error)) => return Err(error),
            Err(Stop::Use(detail)) => return Err(wrong(info, detail)),
        };
    }
    Ok(known)
}

/// Takes from the budget what padding makes packed weights larger than stored ones.
pub(crate) fn take_padding(conv: &Conv, map: Map, panel: usize, budget: &mut Budget) -> Result<()> {
    if conv.is_depthwise(map) {
        return Ok(());
    }
    let columns = map.channels / conv.groups;
    let padding = columns.next_multiple_of(panel) - columns;
    let values = (conv.steps() as u64 * conv.groups as u64).saturating_mul(padding as u64);
    take_bytes(budget, values, "matrices of convolutions")
}

/// Reads and packs a convolution's weights; `map` is its result.
pub(crate) async fn load(
    bundle: &ModelBundle,
    conv: &Conv,
    map: Map,
    kernel: &Kernel,
) -> Result<Loaded> {
    match &conv.weight {
        Weight::Known(values) => pack(conv, map, values, kernel)
            .map_err(|error| EngineError::invalid_model(&bundle.origin, error.to_string())),
        Weight::Stored(index) => {
            let info = &bundle.weights.weights()[*index];
            let bytes = bundle.weights.read(*index).await?;
            let values = floats(info, &bytes)?;
            pack(conv, map, &values, kernel).map_err(|error| wrong(info, error.to_string()))
        }
    }
}

/// Whether large weights of that type are read.
pub(crate) fn readable(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16)
}

fn floats(info: &WeightInfo, bytes: &[u8]) -> Result<Vec<f32>> {
    if bytes.len() != info.byte_len() {
        let (came, expected) = (bytes.len(), info.byte_len());
        return Err(wrong(
            info,
            format!("{came} bytes came instead of {expected}"),
        ));
    }
    match info.dtype {
        DType::F32 => {
            let chunks = bytes.as_chunks().0.iter();
            Ok(chunks.map(|&chunk| f32::from_le_bytes(chunk)).collect())
        }
        DType::F16 => {
            let chunks = bytes.as_chunks().0.iter();
            Ok(chunks
                .map(|&chunk| half::f16::from_le_bytes(chunk).to_f32())
                .collect())
        }
        other => Err(wrong(
            info,
            format!("{other} is not what weights of convolutions are"),
        )),
    }
}

fn wrong(info: &WeightInfo, detail: String) -> EngineError {
    EngineError::Weight {
        name: info.name.clone(),
        detail,
    }
}

fn pack(
    conv: &Conv,
    map: Map,
    values: &[f32],
    kernel: &Kernel,
) -> std::result::Result<Loaded, Mismatch> {
    let (outputs, taps) = (map.channels, conv.windows.window.taps());
    let (steps, inputs) = (conv.steps(), conv.windows.map.channels / conv.groups);
    let bias = conv
        .bias
        .as_ref()
        .map(|bias| bias.iter().map(|&value| value as f32).collect::<Vec<_>>());
    let scaled = scaled(conv, outputs, values);
    if conv.is_depthwise(map) {
        let weights = (0..taps * outputs).map(|at| scaled[at % outputs * taps + at / outputs]);
        return Ok(Loaded::Depthwise {
            weights: weights.collect(),
            bias: bias.unwrap_or_else(|| vec![0.0; outputs]),
        });
    }
    let columns = outputs / conv.groups;
    let matrix = |group: usize| {
        let part = &scaled[group * columns * steps..][..columns * steps];
        match conv.layout {
            Layout::Rows => Packed::new(kernel, (steps, columns), part, columns, 1),
            Layout::Columns => Packed::new(kernel, (steps, columns), part, 1, steps),
            Layout::Kernels if taps == 1 => Packed::new(kernel, (steps, columns), part, 1, steps),
            Layout::Kernels => {
                // Each row of the product has the channels of a tap side by side.
                let mut turned = Vec::with_capacity(part.len());
                for column in part.chunks_exact(steps) {
                    let places =
                        (0..taps).flat_map(|tap| (0..inputs).map(move |input| (tap, input)));
                    turned.extend(places.map(|(tap, input)| column[input * taps + tap]));
                }
                Packed::new(kernel, (steps, columns), &turned, 1, steps)
            }
        }
    };
    let groups = (0..conv.groups).map(matrix);
    Ok(Loaded::Product {
        groups: groups.collect::<std::result::Result<_, _>>()?,
        bias,
    })
}

/// The weights times what is folded into them, rounded once.
fn scaled<'v>(conv: &Conv, outputs: usize, values: &'v [f32]) -> Cow<'v, [f32]> {
    let Some(scale) = &conv.scale else {
        return Cow::Borrowed(values);
    };
    let each = values.len() / outputs;
    let channel = |at: usize| match conv.layout {
        Layout::Rows => at % outputs,
        Layout::Kernels | Layout::Columns => at / each,
    };
    let values = values.iter().enumerate();
    let scaled = values.map(|(at, &value)| (f64::from(value) * scale[channel(at)]) as f32);
    Cow::Owned(scaled.collect())
}
