//! A description of a model: its inputs, its outputs and its operators.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bundle::ModelBundle;
use crate::onnx::default_domain;
use crate::onnx::proto::{
    DataType, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto, TypeValue,
    ValueInfoProto,
};
use crate::tensor::DType;

/// One extent of an input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// Always this many.
    Fixed(usize),
    /// Chosen per batch; equal names mean equal extents.
    Symbolic(String),
}

/// An input or output of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueDescription {
    /// The graph's name.
    pub name: String,
    /// The element type; `None` for one that isovec does not carry.
    pub dtype: Option<DType>,
    /// The extents; empty for a scalar, `None` where the model does not say.
    pub dims: Option<Vec<Dim>>,
}

impl ValueDescription {
    /// Whether a tensor of this shape fits.
    pub fn accepts(&self, shape: &[usize]) -> bool {
        let Some(dims) = &self.dims else { return true };
        dims.len() == shape.len()
            && dims.iter().zip(shape).all(|(dim, extent)| match dim {
                Dim::Fixed(fixed) => fixed == extent,
                Dim::Symbolic(_) => true,
            })
    }

    /// The extents as `[batch, sequence, 384]`.
    pub fn dims_text(&self) -> String {
        let Some(dims) = &self.dims else {
            return "any shape".into();
        };
        let dims: Vec<String> = dims
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(fixed) => fixed.to_string(),
                Dim::Symbolic(name) => name.clone(),
            })
            .collect();
        format!("[{}]", dims.join(", "))
    }
}

/// A model, as its graph describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDescription {
    /// The inputs.
    pub inputs: Vec<ValueDescription>,
    /// The outputs.
    pub outputs: Vec<ValueDescription>,
    /// Version of the default operator set.
    pub opset: i64,
    /// The program that wrote the file.
    pub producer: String,
    /// Bytes of all weights and constants of the graph, wherever they are stored.
    pub weights_bytes: u64,
    /// Number of their elements, indices and shapes (i64, i32) not counted.
    pub parameters: u64,
    /// How often each operator occurs, graphs inside nodes included. Operators outside the
    /// default set carry its name in front: `com.microsoft.Attention`.
    pub operators: BTreeMap<String, usize>,
}

/// Describes the inputs, outputs and operators of a bundle. No weight is read.
pub fn describe(bundle: &ModelBundle) -> ModelDescription {
    let mut description = ModelDescription {
        opset: default_opset(&bundle.graph),
        producer: [&bundle.graph.producer_name, &bundle.graph.producer_version]
            .map(|text| text.trim())
            .join(" ")
            .trim()
            .to_owned(),
        ..ModelDescription::default()
    };
    for weight in bundle.weights.weights() {
        description.weights_bytes = description
            .weights_bytes
            .saturating_add(weight.byte_len() as u64);
        if !matches!(weight.dtype, DType::I64 | DType::I32) {
            description.parameters = description
                .parameters
                .saturating_add(weight.elements() as u64);
        }
    }
    let Some(graph) = &bundle.graph.graph else {
        return description;
    };
    for tensor in &graph.initializer {
        description.weights_bytes = description
            .weights_bytes
            .saturating_add(tensor.raw_data.len() as u64);
        let indices = [DataType::Int64 as i32, DataType::Int32 as i32];
        if !indices.contains(&tensor.data_type) {
            let elements = tensor.dims.iter().map(|&extent| extent.max(0) as u64);
            let count = elements.fold(1, u64::saturating_mul);
            description.parameters = description.parameters.saturating_add(count);
        }
    }
    description.inputs = graph.input.iter().map(describe_value).collect();
    description.outputs = graph.output.iter().map(describe_value).collect();
    count_operators(graph, &mut description.operators);
    description
}

/// Version of the default operator set; 0 when the model imports none.
pub fn default_opset(model: &ModelProto) -> i64 {
    let mut sets = model.opset_import.iter();
    let default = sets.find(|set| default_domain(&set.domain).is_empty());
    default.map_or(0, |set| set.version)
}

/// The description of an input or output in the graph.
pub fn describe_value(value: &ValueInfoProto) -> ValueDescription {
    let declared = value
        .r#type
        .as_ref()
        .and_then(|declared| declared.value.as_ref());
    let Some(TypeValue::Tensor(tensor)) = declared else {
        return ValueDescription {
            name: value.name.clone(),
            dtype: None,
            dims: None,
        };
    };
    let dims = tensor.shape.as_ref().map(|shape| {
        let dims = shape.dim.iter().enumerate();
        dims.map(|(axis, dim)| {
            // Two extents that are not known need not be equal, so each gets a name of its own.
            declared_extent(dim).unwrap_or_else(|| Dim::Symbolic(format!("{}.{axis}", value.name)))
        })
        .collect()
    });
    ValueDescription {
        name: value.name.clone(),
        dtype: DataType::try_from(tensor.elem_type)
            .ok()
            .and_then(|data_type| DType::try_from(data_type).ok()),
        dims,
    }
}

/// An extent as the graph declares it; `None` for one that is not known, for which exporters write
/// no name, 0 or -1.
pub fn declared_extent(dim: &Dimension) -> Option<Dim> {
    match &dim.value {
        Some(DimensionValue::Value(extent @ 1..)) => Some(Dim::Fixed(*extent as usize)),
        Some(DimensionValue::Param(name)) if !name.is_empty() => Some(Dim::Symbolic(name.clone())),
        _ => None,
    }
}

fn count_operators(graph: &GraphProto, counts: &mut BTreeMap<String, usize>) {
    for node in &graph.node {
        *counts.entry(operator(node)).or_default() += 1;
        for attribute in &node.attribute {
            for inner in attribute.g.iter().chain(&attribute.graphs) {
                count_operators(inner, counts);
            }
        }
    }
}

/// The operator's name, with its set in front unless that is the default one.
fn operator(node: &NodeProto) -> String {
    match default_domain(&node.domain) {
        "" => node.op_type.clone(),
        domain => format!("{domain}.{}", node.op_type),
    }
}
