//! The numeric class that a model computes in, as its graph tells it.

use isovec_engine::bundle::ModelBundle;
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

/// The coarsest class that occurs.
pub(crate) fn of(bundle: &ModelBundle) -> Precision {
    let nodes = bundle.graph.graph.iter().flat_map(|graph| &graph.node);
    let quantized = |op: &str| QUANTIZED.contains(&op) || op.starts_with("DynamicQuantize");
    if nodes.map(|node| node.op_type.as_str()).any(quantized) {
        return Precision::Int8;
    }
    let half = bundle
        .weights
        .weights()
        .iter()
        .any(|weight| weight.dtype == DType::F16);
    if half { Precision::F16 } else { Precision::F32 }
}
