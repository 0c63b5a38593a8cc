//! A bundle's graph in the form that a session is made from.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::onnx::proto::{
    DATA_LOCATION_EXTERNAL, DataType, StringStringEntryProto, TensorProto,
};
use isovec_engine::weights::WeightInfo;
use prost::Message;

/// ONNX IR from which initializers need not be listed among the inputs.
const IR_VERSION_SEPARATE_INITIALIZERS: i64 = 4;

/// The graph's bytes, with every weight declared as data that is somewhere else.
///
/// The declaration is what `AddExternalInitializers` fills in. ONNX Runtime then takes the tensor
/// for a constant like any other, folds and fuses with it, and reads it where it lies.
/// (`AddInitializer` alone does not do: it wants the data to be in the graph, or in a file that
/// exists, when the graph is parsed.)
pub(crate) fn serialise(bundle: &ModelBundle) -> Result<Vec<u8>> {
    let mut model = bundle.graph.clone();
    let graph = model
        .graph
        .as_mut()
        .ok_or_else(|| EngineError::invalid_model(&bundle.origin, "it has no graph"))?;
    for info in bundle.weights.weights() {
        graph.initializer.push(declare(info)?);
    }
    model.ir_version = model.ir_version.max(IR_VERSION_SEPARATE_INITIALIZERS);
    Ok(model.encode_to_vec())
}

fn declare(info: &WeightInfo) -> Result<TensorProto> {
    let dims = info
        .shape
        .iter()
        .map(|&extent| i64::try_from(extent))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| EngineError::Weight {
            name: info.name.clone(),
            detail: format!("shape {:?} is past ONNX's limit", info.shape),
        })?;
    Ok(TensorProto {
        name: info.name.clone(),
        data_type: DataType::from(info.dtype) as i32,
        dims,
        data_location: DATA_LOCATION_EXTERNAL,
        external_data: vec![StringStringEntryProto {
            key: "location".into(),
            value: "supplied by isovec".into(),
        }],
        ..TensorProto::default()
    })
}
