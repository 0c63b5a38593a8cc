//! The graph as tract reads it, with the large weights as inputs that will be filled in later.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::onnx::proto::{
    DataType, Dimension, DimensionValue, GraphProto, ModelProto, TensorProto, TypeValue,
};
use isovec_engine::weights::WeightInfo;
use isovec_engine::{EngineError, Result};
use isovec_model::onnx::builder::value_info;
use prost::Message;
use tract_onnx::pb;
use tract_onnx::prelude::InferenceModel;

use super::{DEFERRED_MIN_BYTES, phase};

/// A graph whose last inputs stand for weights.
pub(crate) struct Parsed {
    /// The graph. Its first inputs are the model's own.
    pub model: InferenceModel,
    /// For each further input, the weight that it stands for, by its index in the source.
    pub deferred: Vec<usize>,
}

/// Parses a bundle's graph. Small weights are read and put into it.
pub(crate) async fn parse(bundle: &ModelBundle) -> Result<Parsed> {
    let origin = bundle.origin.as_str();
    let mut proto = bundle.graph.clone();
    let Some(graph) = proto.graph.as_mut() else {
        return Err(EngineError::invalid_model(origin, "it holds no graph"));
    };
    name_all_dimensions(graph);
    let mut deferred = Vec::new();
    for (index, info) in bundle.weights.weights().iter().enumerate() {
        // A graph may list its weights among its inputs; they are none.
        graph.input.retain(|input| input.name != info.name);
        if info.byte_len() < DEFERRED_MIN_BYTES {
            graph
                .initializer
                .push(initializer(bundle, index, info).await?);
        } else {
            deferred.push(index);
        }
    }
    for &index in &deferred {
        let info = &bundle.weights.weights()[index];
        let dims: Vec<Dim> = info
            .shape
            .iter()
            .map(|&extent| Dim::Fixed(extent))
            .collect();
        graph.input.push(value_info(&info.name, info.dtype, &dims));
    }

    let model = phase(origin, "the meaning of its graph", || {
        let proto = to_tract(&proto)?;
        let parsed = tract_onnx::onnx().parse(&proto, None)?;
        if parsed.unresolved_inputs.is_empty() {
            Ok(parsed.model)
        } else {
            Err(tract_onnx::prelude::TractError::msg(format!(
                "nothing makes {:?}",
                parsed.unresolved_inputs
            )))
        }
    })?;
    Ok(Parsed { model, deferred })
}

/// The same message in tract's own types; only the small graph goes through this.
fn to_tract(proto: &ModelProto) -> Result<pb::ModelProto, tract_onnx::prelude::TractError> {
    Ok(pb::ModelProto::decode(proto.encode_to_vec().as_slice())?)
}

async fn initializer(bundle: &ModelBundle, index: usize, info: &WeightInfo) -> Result<TensorProto> {
    let raw_data = super::fold::read(bundle, index).await?;
    Ok(TensorProto {
        name: info.name.clone(),
        data_type: DataType::from(info.dtype) as i32,
        dims: info.shape.iter().map(|&extent| extent as i64).collect(),
        raw_data,
        ..TensorProto::default()
    })
}

/// Gives every open extent of an input a name, by its axis: extents without a name would be taken
/// for different ones, and ids could not meet their mask. Where two of them do differ, the run
/// says so.
fn name_all_dimensions(graph: &mut GraphProto) {
    let initialized: Vec<String> = graph.initializer.iter().map(|t| t.name.clone()).collect();
    for input in graph
        .input
        .iter_mut()
        .filter(|input| !initialized.contains(&input.name))
    {
        let Some(TypeValue::Tensor(tensor)) =
            input.r#type.as_mut().and_then(|kind| kind.value.as_mut())
        else {
            continue;
        };
        let dims = tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim);
        for (axis, dim) in dims.enumerate() {
            if is_open(dim) {
                dim.value = Some(DimensionValue::Param(format!("isovec_axis_{axis}")));
            }
        }
    }
}

fn is_open(dim: &Dimension) -> bool {
    match &dim.value {
        None => true,
        Some(DimensionValue::Value(extent)) => *extent < 0,
        Some(DimensionValue::Param(name)) => name.is_empty() || name == "?",
    }
}
