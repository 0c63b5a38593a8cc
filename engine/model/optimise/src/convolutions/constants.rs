//! The constants of a graph, wherever they are stored.

use std::collections::HashMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto, TensorProto};
use isovec_engine::tensor::DType;
use isovec_model::precision::floats;

use crate::error::Result;

/// The constant that a node is: its name, and its values.
pub(super) fn constant(node: &NodeProto) -> Option<(&str, &TensorProto)> {
    let named = node.op_type == "Constant" && default_domain(&node.domain).is_empty();
    let mut attributes = node.attribute.iter().filter(|_| named);
    let tensor = attributes.find(|attribute| attribute.name == "value")?;
    Some((node.output.first()?, tensor.t.as_ref()?))
}

/// Where a constant's values are.
#[derive(Debug, Clone, Copy)]
enum Place<'b> {
    /// The index of a weight.
    Weight(usize),
    /// In the graph.
    Graph(&'b TensorProto),
}

/// The constants of f32s.
pub(super) struct Constants<'b> {
    bundle: &'b ModelBundle,
    places: HashMap<&'b str, Place<'b>>,
}

impl<'b> Constants<'b> {
    pub(super) fn of(bundle: &'b ModelBundle, graph: &'b GraphProto) -> Self {
        let weights = (0..).zip(bundle.weights.weights());
        let weights = weights
            .filter(|(_, info)| info.dtype == DType::F32)
            .map(|(index, info)| (info.name.as_str(), Place::Weight(index)));
        // Small constants stay nodes where an exporter wrote them so.
        let small = graph
            .initializer
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor));
        let small = small.chain(graph.node.iter().filter_map(constant));
        let small = small
            .filter(|(_, tensor)| tensor.data_type == DataType::Float as i32)
            .map(|(name, tensor)| (name, Place::Graph(tensor)));
        Self {
            bundle,
            places: small.chain(weights).collect(),
        }
    }

    /// The extents of a constant.
    pub(super) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        match self.places.get(name)? {
            Place::Weight(index) => Some(self.bundle.weights.weights()[*index].shape.clone()),
            Place::Graph(tensor) => {
                let extents = tensor.dims.iter();
                extents.map(|&extent| extent.try_into().ok()).collect()
            }
        }
    }

    /// The index of a constant that is a weight.
    pub(super) fn weight(&self, name: &str) -> Option<usize> {
        match self.places.get(name)? {
            Place::Weight(index) => Some(*index),
            Place::Graph(_) => None,
        }
    }

    /// The values of a constant; none for what is no constant.
    pub(super) async fn values(&self, name: &str) -> Result<Vec<f32>> {
        Ok(match self.places.get(name) {
            None => Vec::new(),
            Some(Place::Weight(index)) => floats(&self.bundle.weights, *index).await?,
            Some(Place::Graph(tensor)) => {
                let (values, _) = tensor.raw_data.as_chunks::<4>();
                let values = values.iter().map(|bytes| f32::from_le_bytes(*bytes));
                values.collect()
            }
        })
    }
}
