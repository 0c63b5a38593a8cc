//! Reads an ONNX graph, node by node, into values and a program.

pub(crate) mod attention;
mod call;
mod centred;
mod elementwise;
mod known;
mod larger;
mod layout;
mod pool;
mod product;
mod windows;

use std::collections::HashMap;
use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::default_opset;
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{
    DataType, DimensionValue, GraphProto, NodeProto, TypeValue, ValueInfoProto,
};
use isovec_engine::pause::Pause;
use isovec_kernels::conv::Map;

use crate::builder::Builder;
use crate::error::{CompileError, Refused, Stop, Why};
use crate::node::{Node, NodeId, Op};
use crate::value::{Axis, Data, Numbers, PLANAR, Value};
use call::Call;

/// Operators between two turns of others.
const TURN: usize = 32;

/// What a graph amounts to.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) nodes: Vec<Node>,
    pub(crate) input: Input,
    pub(crate) outputs: Vec<Output>,
}

/// The picture.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// Its name in the graph.
    pub(crate) name: String,
    /// Its extents.
    pub(crate) map: Map,
}

/// An output of the graph.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// Its name in the graph.
    pub(crate) name: String,
    pub(crate) node: NodeId,
    /// The extents of a picture's part of it.
    pub(crate) extents: Vec<usize>,
}

/// Reads a bundle's graph. `known` are the weights that have been read, by their index.
///
/// # Errors
/// [`Refused`], naming the first operator that has no place in a program; `OverBudget` and `Cancelled`.
pub(crate) async fn lower(
    bundle: &ModelBundle,
    known: HashMap<usize, Numbers>,
    budget: &mut Budget,
    pause: &mut dyn Pause,
) -> Result<Lowered, CompileError> {
    let graph = bundle.graph.graph.as_ref();
    let graph = graph.ok_or_else(|| Refused::Graph("the file holds no graph".into()))?;
    let mut lowerer = Lowerer {
        builder: Builder::default(),
        values: HashMap::new(),
        reads: reads(graph),
        opset: default_opset(&bundle.graph),
        pictures: None,
        budget,
    };
    lowerer.weights(bundle, known);
    for tensor in &graph.initializer {
        let numbers = Numbers::of_tensor(tensor, lowerer.budget);
        let numbers = numbers.map_err(|stop| match stop {
            Stop::Engine(error) => CompileError::Engine(error),
            Stop::Use(why) => {
                Refused::Graph(format!("initializer {:?}: {why}", tensor.name)).into()
            }
        })?;
        let value = Value::Numbers(Arc::new(numbers));
        lowerer.values.insert(tensor.name.clone(), value);
    }
    let input = lowerer.input(graph)?;
    for (at, node) in graph.node.iter().enumerate() {
        lowerer.node(node)?;
        if at % TURN == TURN - 1 {
            pause.pause().await;
        }
    }
    let outputs = graph.output.iter().map(|output| lowerer.output(output));
    let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    let places: Vec<NodeId> = outputs.iter().map(|output| output.node).collect();
    let (nodes, places) = lowerer.builder.finish(&places);
    for (output, place) in outputs.iter_mut().zip(places) {
        output.node = place;
    }
    Ok(Lowered {
        nodes,
        input,
        outputs,
    })
}

/// How often each name is read, by nodes and as an output.
fn reads(graph: &GraphProto) -> HashMap<String, usize> {
    let mut reads = HashMap::new();
    let outputs = graph.output.iter().map(|output| &output.name);
    for name in graph
        .node
        .iter()
        .flat_map(|node| &node.input)
        .chain(outputs)
    {
        *reads.entry(name.clone()).or_default() += 1;
    }
    reads
}

/// Whether an operator is known, whatever may be said of the ways to use it.
pub fn knows(node: &NodeProto) -> bool {
    default_domain(&node.domain).is_empty() && OPERATORS.contains(&node.op_type.as_str())
}

/// The operators of [`Lowerer::operator`].
const OPERATORS: [&str; 44] = [
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "Constant",
    "Conv",
    "ConvTranspose",
    "Div",
    "Dropout",
    "Erf",
    "Exp",
    "Flatten",
    "Gather",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LayerNormalization",
    "MatMul",
    "Max",
    "MaxPool",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Resize",
    "Shape",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Tanh",
    "Transpose",
    "Unsqueeze",
];

/// The state of reading.
#[derive(Debug)]
struct Lowerer<'b> {
    builder: Builder,
    values: HashMap<String, Value>,
    reads: HashMap<String, usize>,
    opset: i64,
    /// The number of pictures of every batch, where the graph says it.
    pictures: Option<i64>,
    budget: &'b mut Budget,
}

impl Lowerer<'_> {
    /// A name of the graph stands for a value from now on.
    fn know(&mut self, name: &str, value: Value) {
        if let Value::Data(data) = &value {
            let reads = self.reads.get(name).copied().unwrap_or_default();
            self.builder.named(data.node, reads);
        }
        self.values.insert(name.to_owned(), value);
    }

    /// A node's result with axes as the graph names them.
    fn data(&self, node: NodeId, axes: &[Axis]) -> Value {
        let map = self.builder.map(node);
        Value::Data(Data {
            node,
            axes: axes.iter().map(|axis| axis.plain(map)).collect(),
        })
    }

    /// Whether a value has these axes.
    fn has(&self, data: &Data, axes: &[Axis]) -> bool {
        let map = self.builder.map(data.node);
        data.axes.len() == axes.len()
            && data
                .axes
                .iter()
                .zip(axes)
                .all(|(own, axis)| *own == axis.plain(map))
    }

    /// A picture `[batch, channels, rows, columns]`.
    ///
    /// # Errors
    /// If the value is none.
    fn planar(&self, data: &Data) -> Why<Map> {
        match self.has(data, &PLANAR) {
            true => Ok(self.builder.map(data.node)),
            false => Err("its input is not [batch, channels, rows, columns]".into()),
        }
    }

    /// The same value with other axes: no work.
    fn renamed(&mut self, node: NodeId, axes: &[Axis]) -> Value {
        self.builder.renamed(node);
        self.data(node, axes)
    }

    fn weights(&mut self, bundle: &ModelBundle, mut known: HashMap<usize, Numbers>) {
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            let value = match known.remove(&index) {
                Some(numbers) => Value::Numbers(Arc::new(numbers)),
                None => Value::Weight {
                    index,
                    shape: info.shape.clone(),
                },
            };
            self.values.insert(info.name.clone(), value);
        }
    }

    fn input(&mut self, graph: &GraphProto) -> Result<Input, Refused> {
        let inputs = graph.input.iter();
        let mut inputs = inputs.filter(|input| !self.values.contains_key(&input.name));
        let (Some(input), None) = (inputs.next(), inputs.next()) else {
            return Err(Refused::Graph(
                "it does not have one input, a picture".into(),
            ));
        };
        let (pictures, map) = picture(input).ok_or_else(|| {
            let name = &input.name;
            Refused::Graph(format!(
                "input {name:?} is not [batch, channels, rows, columns] of f32 with three fixed extents"
            ))
        })?;
        self.pictures = pictures;
        let node = self.builder.push(Op::Input, map);
        let value = self.data(node, &PLANAR);
        self.know(&input.name, value);
        Ok(Input {
            name: input.name.clone(),
            map,
        })
    }

    fn node(&mut self, node: &NodeProto) -> Result<(), CompileError> {
        let operator = match default_domain(&node.domain) {
            "" => node.op_type.clone(),
            other => format!("{other}::{}", node.op_type),
        };
        let name = [&node.name].into_iter().chain(&node.output);
        let name = name.into_iter().find(|name| !name.is_empty());
        let name = name.cloned().unwrap_or_default();
        self.budget.take(Resource::Steps, 1, "the graph")?;
        if !knows(node) {
            return Err(Refused::Operator {
                operator,
                node: name,
            }
            .into());
        }
        let value = self.value(node).map_err(|stop| match stop {
            Stop::Engine(error) => CompileError::Engine(error),
            Stop::Use(why) => Refused::Use {
                operator,
                node: name,
                why,
            }
            .into(),
        })?;
        let others = node.output.iter().skip(1);
        for other in others.filter(|other| !other.is_empty()) {
            // Nothing reads it, or the graph is refused where something does.
            self.values.remove(other);
        }
        if let Some(output) = node.output.first() {
            self.know(output, value);
        }
        Ok(())
    }

    /// The value of a node's first output.
    fn value(&mut self, node: &NodeProto) -> Why<Value> {
        let inputs = node.input.iter().map(|input| match input.as_str() {
            "" => Ok(None),
            input => match self.values.get(input) {
                Some(value) => Ok(Some(value.clone())),
                None => Err(Stop::from(format!("nothing before it makes {input:?}"))),
            },
        });
        let call = Call {
            node,
            inputs: inputs.collect::<Why<_>>()?,
            opset: self.opset,
        };
        let outputs = node.output.iter().skip(1);
        if let Some(read) = outputs
            .into_iter()
            .find(|name| self.reads.contains_key(*name))
        {
            return Err(format!("something reads its output {read:?}").into());
        }
        let before = self.builder.nodes.len();
        let value = self
            .operator(&node.op_type, &call)
            .map_err(|stop| match stop {
                Stop::Use(why) => Stop::Use(format!("{why} (of {})", call.what())),
                stop => stop,
            })?;
        for node in &self.builder.nodes[before..] {
            let Map {
                height,
                width,
                channels,
            } = node.map;
            let values = height.checked_mul(width);
            let values = values.and_then(|pixels| pixels.checked_mul(channels));
            // As many bytes as every target can address.
            if values.is_none_or(|values| values == 0 || values > (i32::MAX / 4) as usize) {
                return Err(format!("its result is {height} x {width} x {channels}").into());
            }
        }
        Ok(value)
    }

    fn operator(&mut self, operator: &str, call: &Call<'_>) -> Why<Value> {
        // What is known is computed at once.
        if let Some(value) = known::compute(operator, call, self)? {
            return Ok(value);
        }
        if let Some(value) = self.attention(operator, call)? {
            return Ok(value);
        }
        if let Some(value) = self.centred(operator, call)? {
            return Ok(value);
        }
        match operator {
            "Conv" => self.conv(call),
            "ConvTranspose" => self.conv_transpose(call),
            "Gemm" => self.gemm(call),
            "MatMul" => self.matmul(call),
            "BatchNormalization" => self.batch_normalization(call),
            "LayerNormalization" => self.layer_normalization(call),
            "MaxPool" => self.max_pool(call),
            "AveragePool" => self.average_pool(call),
            "GlobalAveragePool" => self.global_average_pool(call),
            "ReduceMean" => self.reduce_mean(call),
            "ReduceSum" => self.reduce_sum(call),
            "Flatten" => self.flatten(call),
            "Reshape" => self.reshape(call),
            "Resize" => self.resize(call),
            "Squeeze" => self.squeeze(call),
            "Unsqueeze" => self.unsqueeze(call),
            "Transpose" => self.transpose(call),
            "Concat" => self.concat(call),
            "Softmax" => self.softmax(call),
            "Cast" | "Dropout" | "Identity" => self.identity(call),
            _ => self.elementwise(operator, call),
        }
    }

    fn output(&mut self, output: &ValueInfoProto) -> Result<Output, Refused> {
        let name = &output.name;
        let wrong = |why: &str| Refused::Graph(format!("output {name:?} {why}"));
        if output.r#type.is_some() && element_type(output) != Some(DataType::Float) {
            return Err(wrong("is not f32"));
        }
        let Some(Value::Data(data)) = self.values.get(name).cloned() else {
            return Err(wrong("is not computed of the picture"));
        };
        let map = self.builder.map(data.node);
        let Some((Axis::Batch, axes)) = data.axes.split_first() else {
            return Err(wrong("is not one row for each picture"));
        };
        let extents = axes.iter().filter_map(|axis| axis.extent(map)).collect();
        let node = self
            .in_order(data.node, axes)
            .ok_or_else(|| wrong("has its axes in another order"))?;
        Ok(Output {
            name: name.clone(),
            node,
            extents,
        })
    }

    /// A node whose values follow each other in the order of these axes.
    fn in_order(&mut self, node: NodeId, axes: &[Axis]) -> Option<NodeId> {
        let map = self.builder.map(node);
        let axes: Vec<Axis> = axes
            .iter()
            .copied()
            .filter(|axis| *axis != Axis::One)
            .collect();
        let plain = |order: [Axis; 3]| -> Vec<Axis> {
            let order = order.into_iter().map(|axis| axis.plain(map));
            order.filter(|axis| *axis != Axis::One).collect()
        };
        if axes == plain([Axis::Row, Axis::Column, Axis::Channel]) {
            return Some(node);
        }
        if axes != plain([Axis::Channel, Axis::Row, Axis::Column]) {
            return None;
        }
        let flat = Map {
            height: 1,
            width: 1,
            channels: map.len(),
        };
        Some(self.builder.push(Op::Planes { x: node }, flat))
    }
}

/// The element type of an input or output that is a tensor.
fn element_type(value: &ValueInfoProto) -> Option<DataType> {
    match value.r#type.as_ref()?.value.as_ref()? {
        TypeValue::Tensor(tensor) => DataType::try_from(tensor.elem_type).ok(),
        _ => None,
    }
}

/// The number of pictures, where it is fixed, and the extents of one.
fn picture(input: &ValueInfoProto) -> Option<(Option<i64>, Map)> {
    let Some(TypeValue::Tensor(tensor)) = &input.r#type.as_ref()?.value else {
        return None;
    };
    if tensor.elem_type != DataType::Float as i32 {
        return None;
    }
    let known = |at: usize| match tensor.shape.as_ref()?.dim[at].value {
        Some(DimensionValue::Value(known)) => Some(known),
        _ => None,
    };
    let fixed = |at: usize| {
        let known = known(at).and_then(|known| usize::try_from(known).ok());
        // More pixels on a side than any picture that isovec reads.
        known.filter(|known| (1..=1 << 16).contains(known))
    };
    if tensor.shape.as_ref()?.dim.len() != 4 {
        return None;
    }
    let map = Map {
        channels: fixed(1)?,
        height: fixed(2)?,
        width: fixed(3)?,
    };
    (map.height
        .checked_mul(map.width)?
        .checked_mul(map.channels)?
        <= (i32::MAX / 4) as usize)
        .then_some((known(0), map))
}

impl From<Stop> for CompileError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Use(why) => Self::Refused(Refused::Graph(why)),
            Stop::Engine(error) => Self::Engine(error),
        }
    }
}

/// Takes memory from the budget before it is used.
///
/// # Errors
/// [`EngineError::OverBudget`], [`EngineError::Cancelled`].
pub(crate) fn take_bytes(budget: &mut Budget, values: u64, place: &str) -> Result<(), EngineError> {
    budget.take(
        Resource::Bytes,
        values.saturating_mul(size_of::<f32>() as u64),
        place,
    )
}
