//! A graph by the names of its values: who makes each, who reads it, and which are constants.

use std::collections::HashMap;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto, TensorProto};
use isovec_engine::tensor::DType;
use isovec_model::precision::floats;

use crate::error::Result;
use crate::int8::users;

pub(super) struct Graph<'b> {
    pub(super) bundle: &'b ModelBundle,
    pub(super) nodes: &'b [NodeProto],
    makers: HashMap<&'b str, usize>,
    readers: HashMap<&'b str, Vec<usize>>,
    users: HashMap<&'b str, usize>,
    weights: HashMap<&'b str, usize>,
    small: HashMap<&'b str, &'b TensorProto>,
}

/// A constant.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    pub(super) shape: Vec<usize>,
    /// Whether it holds f32s.
    pub(super) float: bool,
}

impl Constant {
    /// Values in it.
    pub(super) fn values(&self) -> usize {
        self.shape.iter().product()
    }
}

impl<'b> Graph<'b> {
    pub(super) fn of(bundle: &'b ModelBundle, graph: &'b GraphProto) -> Self {
        let (mut makers, mut readers) = (HashMap::new(), HashMap::<&str, Vec<usize>>::new());
        for (at, node) in graph.node.iter().enumerate() {
            for output in &node.output {
                makers.insert(output.as_str(), at);
            }
            for input in &node.input {
                readers.entry(input).or_default().push(at);
            }
        }
        let infos = bundle.weights.weights().iter().enumerate();
        let small = graph.initializer.iter();
        Self {
            bundle,
            nodes: &graph.node,
            makers,
            readers,
            users: users(graph),
            weights: infos.map(|(at, info)| (info.name.as_str(), at)).collect(),
            small: small.map(|tensor| (tensor.name.as_str(), tensor)).collect(),
        }
    }

    /// The node that makes a value.
    pub(super) fn maker(&self, value: &str) -> Option<usize> {
        self.makers.get(value).copied()
    }

    /// The nodes that read a value, in their order; `None` where something else reads it too: an output, or a graph inside of a node.
    pub(super) fn readers(&self, value: &str) -> Option<&[usize]> {
        let readers = self.readers.get(value).map_or(&[][..], Vec::as_slice);
        (self.uses(value) == readers.len()).then_some(readers)
    }

    /// How often a value is read.
    pub(super) fn uses(&self, value: &str) -> usize {
        self.users.get(value).copied().unwrap_or(0)
    }

    /// An operator of the standard set; empty for others.
    pub(super) fn operator(&self, node: usize) -> &'b str {
        let node = &self.nodes[node];
        match default_domain(&node.domain) {
            "" => &node.op_type,
            _ => "",
        }
    }

    /// A constant by its name.
    pub(super) fn constant(&self, name: &str) -> Option<Constant> {
        if let Some(&at) = self.weights.get(name) {
            let info = &self.bundle.weights.weights()[at];
            return Some(Constant {
                shape: info.shape.clone(),
                float: info.dtype == DType::F32,
            });
        }
        self.small.get(name).map(|tensor| Constant {
            shape: tensor.dims.iter().map(|&extent| extent as usize).collect(),
            float: tensor.data_type == DataType::Float as i32,
        })
    }

    /// The index of a constant among the weights; `None`: it is a small one.
    pub(super) fn weight(&self, name: &str) -> Option<usize> {
        self.weights.get(name).copied()
    }

    /// The values of a small constant of i64s.
    pub(super) fn ints(&self, name: &str) -> Option<Vec<i64>> {
        let tensor = self.small.get(name)?;
        let (values, _) = tensor.raw_data.as_chunks::<8>();
        let is = tensor.data_type == DataType::Int64 as i32;
        is.then(|| {
            values
                .iter()
                .map(|bytes| i64::from_le_bytes(*bytes))
                .collect()
        })
    }

    /// The values of a constant of f32s.
    pub(super) async fn floats(&self, name: &str) -> Result<Vec<f32>> {
        if let Some(&at) = self.weights.get(name) {
            return Ok(floats(&self.bundle.weights, at).await?);
        }
        let bytes = self.small.get(name).map(|tensor| tensor.raw_data.as_ref());
        let (values, _) = bytes.unwrap_or_default().as_chunks::<4>();
        Ok(values
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect())
    }
}
