//! The graph that passes change: its nodes in order, its constants, and who reads what.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use isovec_engine::bundle::{ModelBundle, WEIGHT_MIN_BYTES};
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{
    AttributeProto, DataType, GraphProto, NodeProto, TensorProto, TypeValue,
};
use isovec_engine::tensor::DType;
use isovec_engine::weights::{WeightInfo, WeightsIdentity};
use isovec_model::bundle::prune;
use isovec_model::precision::floats;

use super::value::Value;
use crate::error::Result;
use crate::source::{Form, Reformed};

/// Numbers that a constant may have which is read.
pub(super) const MOST: usize = 1 << 16;

/// A constant.
#[derive(Debug, Clone)]
pub(super) enum Constant {
    /// In the graph.
    Small(Box<TensorProto>),
    /// Among the weights.
    Weight {
        dtype: DType,
        shape: Vec<usize>,
        form: Form,
    },
}

impl Constant {
    /// Its extents.
    pub(super) fn shape(&self) -> Vec<usize> {
        match self {
            Self::Small(tensor) => tensor
                .dims
                .iter()
                .map(|&extent| extent.max(0) as usize)
                .collect(),
            Self::Weight { shape, .. } => shape.clone(),
        }
    }

    /// Whether it holds f32s.
    pub(super) fn is_f32(&self) -> bool {
        match self {
            Self::Small(tensor) => tensor.data_type == DataType::Float as i32,
            Self::Weight { dtype, .. } => *dtype == DType::F32,
        }
    }
}

/// What is known of an input of the graph.
#[derive(Debug, Clone, Copy)]
struct Input {
    element: i32,
    rank: Option<usize>,
}

/// A graph that is being changed.
pub(super) struct Net<'b> {
    bundle: &'b ModelBundle,
    pub(super) opset: i64,
    nodes: Vec<NodeProto>,
    constants: BTreeMap<String, Constant>,
    /// Values that something but a node reads: outputs, and graphs inside of nodes.
    pinned: HashSet<String>,
    inputs: HashMap<String, Input>,
    makers: HashMap<String, usize>,
    readers: HashMap<String, Vec<usize>>,
    fresh: usize,
}

impl<'b> Net<'b> {
    pub(super) fn of(bundle: &'b ModelBundle) -> Self {
        let empty = GraphProto::default();
        let graph = bundle.graph.graph.as_ref().unwrap_or(&empty);
        let mut constants = BTreeMap::new();
        for tensor in &graph.initializer {
            constants.insert(
                tensor.name.clone(),
                Constant::Small(Box::new(tensor.clone())),
            );
        }
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            let weight = Constant::Weight {
                dtype: info.dtype,
                shape: info.shape.clone(),
                form: Form::Same(index),
            };
            constants.insert(info.name.clone(), weight);
        }
        let mut pinned: HashSet<String> = graph
            .output
            .iter()
            .map(|output| output.name.clone())
            .collect();
        graph
            .node
            .iter()
            .for_each(|node| captured(node, &mut pinned));
        let inputs = graph.input.iter().map(|input| {
            let typed = input.r#type.as_ref().and_then(|given| given.value.as_ref());
            let known = match typed {
                Some(TypeValue::Tensor(tensor)) => Input {
                    element: tensor.elem_type,
                    rank: tensor.shape.as_ref().map(|shape| shape.dim.len()),
                },
                _ => Input {
                    element: DataType::Undefined as i32,
                    rank: None,
                },
            };
            (input.name.clone(), known)
        });
        let standard = bundle.graph.opset_import.iter();
        let mut standard = standard.filter(|set| default_domain(&set.domain).is_empty());
        let mut net = Self {
            bundle,
            opset: standard.next().map_or(1, |set| set.version),
            nodes: graph.node.clone(),
            constants,
            pinned,
            inputs: inputs.collect(),
            makers: HashMap::new(),
            readers: HashMap::new(),
            fresh: 0,
        };
        net.index();
        net
    }

    fn index(&mut self) {
        self.makers.clear();
        self.readers.clear();
        for (at, node) in self.nodes.iter().enumerate() {
            for output in node.output.iter().filter(|output| !output.is_empty()) {
                self.makers.insert(output.clone(), at);
            }
            for input in node.input.iter().filter(|input| !input.is_empty()) {
                self.readers.entry(input.clone()).or_default().push(at);
            }
        }
    }

    /// The nodes, each behind those that make what it reads.
    pub(super) fn nodes(&self) -> &[NodeProto] {
        &self.nodes
    }

    /// The name of a node's operator, if it is a standard one with one output that counts; empty for others.
    pub(super) fn operator(&self, at: usize) -> &str {
        let node = &self.nodes[at];
        match default_domain(&node.domain).is_empty() && node.output.len() == 1 {
            true => &node.op_type,
            false => "",
        }
    }

    /// The place of the node that makes a value.
    pub(super) fn maker(&self, value: &str) -> Option<usize> {
        self.makers.get(value).copied()
    }

    /// The place of the node that makes a value by this operator.
    pub(super) fn made_by(&self, value: &str, operator: &str) -> Option<usize> {
        self.maker(value)
            .filter(|&at| self.operator(at) == operator)
    }

    /// The places of the nodes that read a value, one for each time.
    pub(super) fn readers(&self, value: &str) -> &[usize] {
        self.readers.get(value).map_or(&[], Vec::as_slice)
    }

    /// The place of the only node that reads a value, where nothing else does.
    pub(super) fn only_reader(&self, value: &str) -> Option<usize> {
        match self.readers(value) {
            [reader] if !self.pinned.contains(value) => Some(*reader),
            _ => None,
        }
    }

    /// Whether something but a node reads a value.
    pub(super) fn is_pinned(&self, value: &str) -> bool {
        self.pinned.contains(value)
    }

    /// The element type of an input.
    pub(super) fn input_type(&self, value: &str) -> Option<i32> {
        self.inputs.get(value).map(|input| input.element)
    }

    /// The axes of an input.
    pub(super) fn input_rank(&self, value: &str) -> Option<usize> {
        self.inputs.get(value)?.rank
    }

    pub(super) fn constant(&self, name: &str) -> Option<&Constant> {
        self.constants.get(name)
    }

    /// All constants, by name.
    pub(super) fn constants(&self) -> impl Iterator<Item = (&str, &Constant)> {
        self.constants
            .iter()
            .map(|(name, held)| (name.as_str(), held))
    }

    /// The numbers of a constant in the graph.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        match self.constants.get(name)? {
            Constant::Small(tensor) => Value::of(tensor),
            Constant::Weight { .. } => None,
        }
    }

    /// The numbers of a constant, wherever it is; none where they are many.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Value>> {
        let Some(Constant::Weight { dtype, shape, form }) = self.constants.get(name) else {
            return Ok(self.value(name));
        };
        if shape.iter().product::<usize>() > MOST {
            return Ok(None);
        }
        let bytes = match form {
            Form::Same(index) => self.bundle.weights.read(*index).await?,
            Form::Bytes(bytes) => bytes.clone(),
            _ => return Ok(None),
        };
        Ok(Value::of(&TensorProto {
            data_type: DataType::from(*dtype) as i32,
            dims: shape.iter().map(|&extent| extent as i64).collect(),
            raw_data: bytes,
            ..TensorProto::default()
        }))
    }

    /// The only number of a constant of one float. One of more axes than one would give a value that has fewer all of its own.
    pub(super) fn float(&self, name: &str) -> Option<f32> {
        let value = self.value(name)?;
        value.float().filter(|_| value.shape.len() <= 1)
    }

    /// For a node of this operator of two inputs, of which one is a constant of one float: the other input, and the float.
    pub(super) fn with_float(&self, at: usize, operator: &str) -> Option<(String, f32)> {
        if self.operator(at) != operator {
            return None;
        }
        let [a, b] = self.nodes[at].input.as_slice() else {
            return None;
        };
        match (self.float(a), self.float(b)) {
            (None, Some(number)) => Some((a.clone(), number)),
            (Some(number), None) => Some((b.clone(), number)),
            _ => None,
        }
    }

    /// The floats of a constant, wherever it is; none for others, and for weights that a pass has changed.
    pub(super) async fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        Ok(match self.constants.get(name) {
            Some(Constant::Small(tensor)) => {
                Value::of(tensor).and_then(|value| value.floats().map(<[f32]>::to_vec))
            }
            Some(Constant::Weight {
                dtype: DType::F32,
                form: Form::Same(index),
                ..
            }) => Some(floats(&self.bundle.weights, *index).await?),
            Some(Constant::Weight {
                dtype: DType::F32,
                form: Form::Bytes(bytes),
                ..
            }) => {
                let (values, _) = bytes.as_chunks::<4>();
                Some(
                    values
                        .iter()
                        .map(|bytes| f32::from_le_bytes(*bytes))
                        .collect(),
                )
            }
            _ => None,
        })
    }

    /// Whole numbers that a node is given by an attribute or, in newer operator sets, by a constant input.
    pub(super) fn asked(
        &self,
        node: &NodeProto,
        attribute: &str,
        input: usize,
    ) -> Option<Vec<i64>> {
        match node.ints(attribute) {
            Some(numbers) => Some(numbers.to_vec()),
            None => self.value(node.input.get(input)?)?.ints(),
        }
    }

    /// A name that nothing has yet.
    pub(super) fn fresh(&mut self, hint: &str) -> String {
        loop {
            self.fresh += 1;
            let name = format!("{hint}.s{}", self.fresh);
            let taken = self.makers.contains_key(&name)
                || self.constants.contains_key(&name)
                || self.inputs.contains_key(&name)
                || self.pinned.contains(&name);
            if !taken {
                return name;
            }
        }
    }

    /// Makes the value of a node a constant, which the node no longer makes. Says whether it may be one.
    pub(super) fn settle(&mut self, at: usize, held: Constant) -> bool {
        let name = match self.nodes[at].output.as_mut_slice() {
            [output] if !self.pinned.contains(output) => std::mem::take(output),
            _ => return false,
        };
        self.makers.remove(&name);
        self.constants.insert(name, held);
        true
    }

    /// Numbers as a constant, in the graph or among the weights as their size asks for.
    pub(super) fn held(value: &Value) -> Constant {
        let tensor = value.tensor("");
        let dtype = DataType::try_from(tensor.data_type).ok();
        let dtype = dtype.and_then(|data_type| DType::try_from(data_type).ok());
        match dtype {
            Some(dtype) if tensor.raw_data.len() >= WEIGHT_MIN_BYTES => Constant::Weight {
                dtype,
                shape: value.shape.clone(),
                form: Form::Bytes(tensor.raw_data),
            },
            _ => Constant::Small(Box::new(tensor)),
        }
    }

    /// Adds a constant under a new name, and returns it.
    pub(super) fn hold(&mut self, hint: &str, held: Constant) -> String {
        let name = self.fresh(hint);
        self.constants.insert(name.clone(), held);
        name
    }

    /// Puts a node in the place of another one.
    pub(super) fn put(&mut self, at: usize, node: NodeProto) {
        for input in &self.nodes[at].input {
            if let Some(readers) = self.readers.get_mut(input) {
                readers.retain(|&reader| reader != at);
            }
        }
        for input in node.input.iter().filter(|input| !input.is_empty()) {
            self.readers.entry(input.clone()).or_default().push(at);
        }
        for output in &node.output {
            self.makers.insert(output.clone(), at);
        }
        self.nodes[at] = node;
    }

    /// Lets a node read another value at this place of its inputs.
    pub(super) fn reads(&mut self, at: usize, input: usize, value: &str) {
        let mut node = self.nodes[at].clone();
        if let Some(old) = node.input.get_mut(input) {
            value.clone_into(old);
        }
        self.put(at, node);
    }

    /// Lets every reader of `old` read `new`. The node that made `old` leads to nothing then, unless something but a node reads
    /// `old`: then `new` takes the name of `old`, where it may. Says whether it was done.
    pub(super) fn replace(&mut self, old: &str, new: &str) -> bool {
        if old == new {
            return false;
        }
        if !self.pinned.contains(old) {
            self.rename_readers(old, new);
            return true;
        }
        let free = !self.pinned.contains(new) && !self.inputs.contains_key(new);
        let (Some(maker), Some(gone)) = (self.maker(new).filter(|_| free), self.maker(old)) else {
            return false;
        };
        for output in &mut self.nodes[gone].output {
            if output == old {
                output.clear();
            }
        }
        for output in &mut self.nodes[maker].output {
            if output == new {
                old.clone_into(output);
            }
        }
        self.rename_readers(new, old);
        self.makers.insert(old.to_owned(), maker);
        self.makers.remove(new);
        true
    }

    fn rename_readers(&mut self, old: &str, new: &str) {
        let places = self.readers.remove(old).unwrap_or_default();
        for &at in &places {
            for input in &mut self.nodes[at].input {
                if input == old {
                    new.clone_into(input);
                }
            }
        }
        self.readers
            .entry(new.to_owned())
            .or_default()
            .extend(places);
    }

    /// Takes out the nodes that lead to no output, and the constants that nothing reads.
    pub(super) fn drop_dead(&mut self) {
        let mut needed = self.pinned.clone();
        let mut live = vec![false; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if node.output.iter().any(|output| needed.contains(output)) {
                live[at] = true;
                let read = node.input.iter().filter(|input| !input.is_empty());
                needed.extend(read.cloned());
            }
        }
        let mut live = live.into_iter();
        self.nodes.retain(|_| live.next().unwrap_or(false));
        self.constants.retain(|name, _| needed.contains(name));
        self.index();
    }

    /// The model with this graph, whose identity depends on what was done.
    pub(super) fn finish(self, way: &str) -> ModelBundle {
        let mut hash = blake3::Hasher::new();
        hash.update(way.as_bytes());
        hash.update(self.bundle.identity.0.as_bytes());
        let (mut small, mut infos, mut forms) = (Vec::new(), Vec::new(), Vec::new());
        for (name, held) in self.constants {
            match held {
                Constant::Small(mut tensor) => {
                    tensor.name = name;
                    small.push(*tensor);
                }
                Constant::Weight { dtype, shape, form } => {
                    infos.push(WeightInfo { name, dtype, shape });
                    forms.push(form);
                }
            }
        }
        let mut model = self.bundle.graph.clone();
        for set in &mut model.opset_import {
            if default_domain(&set.domain).is_empty() {
                set.version = self.opset;
            }
        }
        // The version of the format that came with an operator set.
        model.ir_version = model.ir_version.max(match self.opset {
            19.. => 9,
            15.. => 8,
            _ => model.ir_version,
        });
        if let Some(graph) = model.graph.as_mut() {
            graph.node = self.nodes;
            graph.initializer = small;
        }
        let mut made = ModelBundle {
            graph: model,
            weights: Arc::new(Reformed {
                source: self.bundle.weights.clone(),
                infos,
                forms,
            }),
            identity: WeightsIdentity(hash.finalize().to_hex().to_string()),
            ..self.bundle.clone()
        };
        prune(&mut made);
        made
    }
}

/// What the graphs inside of a node read.
fn captured(node: &NodeProto, into: &mut HashSet<String>) {
    for graph in inner(&node.attribute) {
        into.extend(graph.output.iter().map(|output| output.name.clone()));
        for node in &graph.node {
            let read = node.input.iter().filter(|input| !input.is_empty());
            into.extend(read.cloned());
            captured(node, into);
        }
    }
}

/// The graphs in attributes.
pub(super) fn inner(attributes: &[AttributeProto]) -> impl Iterator<Item = &GraphProto> {
    let attributes = attributes.iter();
    attributes.flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}
