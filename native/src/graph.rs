//! A bundle's graph in the form that a session is made from.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::error::{EngineError, Result};
use isovec_model::onnx::builder::value_info;
use prost::Message;

/// ONNX IR from which initializers need not be listed among the inputs.
const IR_VERSION_SEPARATE_INITIALIZERS: i64 = 4;

/// The graph's bytes, with every weight declared as one more input, behind the real ones. The
/// session makes constants of them before it optimises.
pub(crate) fn serialise(bundle: &ModelBundle) -> Result<Vec<u8>> {
    let mut model = bundle.graph.clone();
    let graph = model
        .graph
        .as_mut()
        .ok_or_else(|| EngineError::invalid_model(&bundle.origin, "it has no graph"))?;
    for info in bundle.weights.weights() {
        let dims: Vec<Dim> = info
            .shape
            .iter()
            .map(|&extent| Dim::Fixed(extent))
            .collect();
        graph.input.push(value_info(&info.name, info.dtype, &dims));
    }
    model.ir_version = model.ir_version.max(IR_VERSION_SEPARATE_INITIALIZERS);
    Ok(model.encode_to_vec())
}
