//! A model that is written anew: some of its weights in other forms, constants beside them, and an identity of its own.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::bundle::{ModelBundle, WEIGHT_MIN_BYTES};
use isovec_engine::onnx::proto::{AttributeProto, DataType, GraphProto, NodeProto, TensorProto};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{WeightInfo, WeightsIdentity};
use isovec_model::bundle::prune;

use crate::source::{Form, Reformed};

/// The weights and constants of the new model; those of the old one stay until something is put in their place.
pub(crate) struct Rewriting<'b> {
    bundle: &'b ModelBundle,
    names: HashSet<String>,
    small: Vec<TensorProto>,
    infos: Vec<WeightInfo>,
    forms: Vec<Form>,
    hash: blake3::Hasher,
}

impl<'b> Rewriting<'b> {
    /// Of a model, in this way: its name and version are in the identity.
    pub(crate) fn new(bundle: &'b ModelBundle, graph: &GraphProto, way: &str) -> Self {
        let infos = bundle.weights.weights().to_vec();
        let mut hash = blake3::Hasher::new();
        hash.update(way.as_bytes());
        hash.update(bundle.identity.0.as_bytes());
        let names = infos.iter().map(|info| &info.name);
        let names = names.chain(graph.input.iter().map(|input| &input.name));
        let names = names.chain(graph.initializer.iter().map(|tensor| &tensor.name));
        let names = names.chain(graph.node.iter().flat_map(|node| &node.output));
        Self {
            bundle,
            names: names.cloned().collect(),
            small: Vec::new(),
            forms: (0..infos.len()).map(Form::Same).collect(),
            infos,
            hash,
        }
    }

    /// Makes the identity depend on these bytes, as it does on all constants.
    pub(crate) fn identify(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// A name that nothing has yet.
    pub(crate) fn fresh(&mut self, name: &str) -> String {
        let mut fresh = name.to_owned();
        while !self.names.insert(fresh.clone()) {
            fresh.push('_');
        }
        fresh
    }

    /// Adds a weight, and returns its name.
    pub(crate) fn weight(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        form: Form,
    ) -> String {
        let info = self.info(name, dtype, shape);
        let name = info.name.clone();
        self.infos.push(info);
        self.forms.push(form);
        name
    }

    /// Puts a weight in the place of the old one of this index, whose name a node may have now.
    pub(crate) fn replace(
        &mut self,
        index: usize,
        name: &str,
        dtype: DType,
        shape: &[usize],
        form: Form,
    ) -> String {
        self.infos[index] = self.info(name, dtype, shape);
        self.forms[index] = form;
        self.infos[index].name.clone()
    }

    fn info(&mut self, name: &str, dtype: DType, shape: &[usize]) -> WeightInfo {
        WeightInfo {
            name: self.fresh(name),
            dtype,
            shape: shape.to_vec(),
        }
    }

    /// A constant of f32s.
    pub(crate) fn f32s(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, DType::F32, shape, bytes.collect())
    }

    /// A constant, where reading a file would put it.
    pub(crate) fn constant(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        bytes: Vec<u8>,
    ) -> String {
        let is_weight = bytes.len() >= WEIGHT_MIN_BYTES;
        let bytes = Bytes::from(bytes);
        let name = match is_weight {
            true => self.weight(name, dtype, shape, Form::Bytes(bytes.clone())),
            false => {
                let name = self.fresh(name);
                self.small.push(TensorProto {
                    name: name.clone(),
                    data_type: DataType::from(dtype) as i32,
                    dims: shape.iter().map(|&extent| extent as i64).collect(),
                    raw_data: bytes.clone(),
                    ..TensorProto::default()
                });
                name
            }
        };
        self.identify(name.as_bytes());
        self.identify(&bytes);
        name
    }

    /// The new model: the graph as `write` leaves it, without what no longer leads to an output.
    pub(crate) fn finish(mut self, write: impl FnOnce(&mut GraphProto)) -> ModelBundle {
        let mut model = self.bundle.graph.clone();
        if let Some(graph) = model.graph.as_mut() {
            write(graph);
            name_apart(&mut graph.node);
            graph.initializer.append(&mut self.small);
        }
        let mut made = ModelBundle {
            graph: model,
            weights: Arc::new(Reformed {
                source: self.bundle.weights.clone(),
                infos: self.infos,
                forms: self.forms,
            }),
            identity: WeightsIdentity(self.hash.finalize().to_hex().to_string()),
            ..self.bundle.clone()
        };
        prune(&mut made);
        made
    }
}

/// Gives nodes that have the name of one before them another: a node may be there already that was named after the value that a new one
/// makes now.
fn name_apart(nodes: &mut [NodeProto]) {
    let mut names: HashSet<String> = HashSet::new();
    for node in nodes.iter_mut().filter(|node| !node.name.is_empty()) {
        while !names.insert(node.name.clone()) {
            node.name.push('_');
        }
    }
}

/// A node, named after its first output.
pub(crate) fn node(
    op: &str,
    inputs: &[&str],
    outputs: &[&str],
    attribute: Option<AttributeProto>,
) -> NodeProto {
    let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    NodeProto {
        op_type: op.into(),
        name: format!("{}.node", outputs[0]),
        input: all(inputs),
        output: all(outputs),
        attribute: attribute.into_iter().collect(),
        ..NodeProto::default()
    }
}
