//! The precision class of a model, from its graph.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::engine::Engine;
use isovec_engine::fingerprint::Precision;
use isovec_engine::tensor::DType;

/// Operators of quantised graphs.
const QUANTIZED: [&str; 6] = [
    "MatMulInteger",
    "ConvInteger",
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "QLinearMatMul",
    "QLinearConv",
];

/// Which of two classes is the coarser: the one with the larger number.
pub(crate) fn coarseness(precision: Precision) -> u8 {
    match precision {
        Precision::F32 => 0,
        Precision::F16 => 1,
        Precision::Bf16 => 2,
        Precision::Int8Fast => 4,
        _ => 3,
    }
}

/// The class of the vectors that an engine computes of a bundle.
pub(crate) fn computed(bundle: &ModelBundle, engine: &dyn Engine) -> Precision {
    let stored = of_weights(bundle);
    let arithmetic = engine.capabilities().precision;
    match coarseness(arithmetic) > coarseness(stored) {
        true => arithmetic,
        false => stored,
    }
}

/// The class that a bundle asks for: that of its weights, and of activations where they are to be rounded.
pub(crate) fn of(bundle: &ModelBundle) -> Precision {
    match of_weights(bundle) {
        Precision::Int8 if bundle.rounds_activations() => Precision::Int8Fast,
        weights => weights,
    }
}

/// The coarsest class that occurs.
fn of_weights(bundle: &ModelBundle) -> Precision {
    let nodes = bundle.graph.graph.iter().flat_map(|graph| &graph.node);
    let quantized = |op: &str| QUANTIZED.contains(&op) || op.starts_with("DynamicQuantize");
    if nodes.map(|node| node.op_type.as_str()).any(quantized) {
        return Precision::Int8;
    }
    let weights = bundle.weights.weights().iter();
    let stored = weights.map(|weight| match weight.dtype {
        // Some programs dequantise with plain operators.
        DType::I8 | DType::U8 => Precision::Int8,
        DType::F16 => Precision::F16,
        DType::BF16 => Precision::Bf16,
        _ => Precision::F32,
    });
    stored
        .max_by_key(|&stored| coarseness(stored))
        .unwrap_or_default()
}
