//! Reads an ONNX graph, node by node, into values and a program.

mod call;
mod columns;
mod composed;
mod distances;
mod elementwise;
mod fits;
mod product;
mod reduce;
mod rotary;
mod shape;
mod slice;
mod table;
mod terms;

use std::collections::HashMap;
use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::budget::Resource;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::{
    DataType, DimensionValue, GraphProto, NodeProto, TensorProto, TensorType, TypeValue,
};
use isovec_engine::pause::Pause;
use isovec_engine::tensor::DType;

use crate::builder::{Builder, WIDEST, within_bounds};
use crate::constant::{Constant, Kind, elements};
use crate::dim::Dim;
use crate::error::{Unlowered, Why};
use crate::executable::CompileError;
use crate::ledger::{Ledger, Numbers};
use crate::magnitude;
use crate::node::{NodeId, Op, Rows};
use crate::value::{Axis, Data, Value, Weight};
use call::Call;
use fits::Types;

/// The input that says which positions are seen. Rows have no padding, so it is all ones; attention knows of those that are not
/// seen by itself.
const MASK: &str = isovec_engine::engine::MASK;

/// What a graph amounts to.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) builder: Builder,
    /// The graph's outputs, one after another: their node and the extents of a row.
    pub(crate) outputs: Vec<Output>,
}

/// An output of the graph: a row for each text, or one for each token.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name in the graph.
    pub name: String,
    /// The node that it shows all of.
    pub node: NodeId,
    /// The extents of a text's or a token's row; their product is the node's width.
    pub extents: Vec<usize>,
    /// Whether there is a row for each token.
    pub of_tokens: bool,
}

/// Operators between two turns of others.
const TURN: usize = 32;
/// The most axes of a value: more than any engine computes with.
const MOST_AXES: usize = 32;

/// Reads a bundle's graph. `known` are the weights that have been read, by their index.
///
/// # Errors
/// [`Unlowered`], naming the first operator that has no place in a program; `OverBudget` for a graph that costs more
/// than the ledger allows, and `Cancelled`.
pub(crate) async fn lower(
    bundle: &ModelBundle,
    known: HashMap<usize, Constant>,
    positions: usize,
    ledger: &Ledger,
    pause: &mut dyn Pause,
) -> Result<Lowered, CompileError> {
    let graph = bundle.graph.graph.as_ref();
    let graph = graph.ok_or_else(|| Unlowered::Graph("the file holds no graph".into()))?;
    let opset = bundle
        .graph
        .opset_import
        .iter()
        .find(|set| isovec_engine::onnx::default_domain(&set.domain).is_empty())
        .map_or(1, |set| set.version);
    let mut lowerer = Lowerer {
        builder: Builder::new(ledger.clone()),
        values: HashMap::new(),
        opset,
        positions,
        fewest: 1,
    };
    lowerer.weights(bundle, known);
    lowerer.constants(graph)?;
    lowerer.inputs(graph)?;
    let last = last_readers(graph);
    for (at, node) in graph.node.iter().enumerate() {
        lowerer.node(node)?;
        lowerer.forget(node, at, &last);
        if at % TURN == TURN - 1 {
            pause.pause().await;
        }
    }
    let outputs = graph
        .output
        .iter()
        .map(|output| lowerer.output(&output.name));
    let outputs = outputs.collect::<Result<_, _>>()?;
    lowerer.affordable()?;
    Ok(Lowered {
        builder: lowerer.builder,
        outputs,
    })
}

/// The last extent of an input `[batch, sequence, width]` of f32, where it is such a one: it says how wide it is, and leaves the
/// number of rows open. A tensor of three fixed extents is anything, and no list of rows.
fn wide_of(tensor: &TensorType) -> Option<usize> {
    let dims = &tensor.shape.as_ref()?.dim;
    let ([rows, _, last], true) = (&dims[..], tensor.elem_type == DataType::Float as i32) else {
        return None;
    };
    match (&rows.value, &last.value) {
        (Some(DimensionValue::Value(_)), _) => None,
        (_, Some(DimensionValue::Value(width))) if (1..=WIDEST as i64).contains(width) => {
            Some(*width as usize)
        }
        _ => None,
    }
}

/// The number of a row's tokens, where the graph fixes it.
fn tokens_of(tensor: &TensorType) -> Option<i64> {
    match tensor.shape.as_ref()?.dim.get(1)?.value {
        Some(DimensionValue::Value(tokens)) if tokens > 0 => Some(tokens),
        _ => None,
    }
}

/// The last node that reads each value, by its name; none for the graph's outputs, which stay.
fn last_readers(graph: &GraphProto) -> HashMap<&str, usize> {
    let mut last = HashMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        last.extend(node.input.iter().map(|input| (input.as_str(), at)));
    }
    for output in &graph.output {
        last.insert(&output.name, usize::MAX);
    }
    last
}

/// Whether an operator is known, whatever may be said of the ways to use it.
pub fn knows(node: &NodeProto) -> bool {
    let bare = NodeProto {
        op_type: node.op_type.clone(),
        domain: node.domain.clone(),
        ..NodeProto::default()
    };
    let call = Call {
        node: &bare,
        inputs: Vec::new(),
        opset: 17,
    };
    // A node without inputs is one that every family refuses, unless it does not know the name.
    !matches!(
        Lowerer::default().operator(&full_name(node), &call),
        Ok(None)
    )
}

/// An operator's name, with its domain where that is not the default.
fn full_name(node: &NodeProto) -> String {
    match isovec_engine::onnx::default_domain(&node.domain) {
        "" => node.op_type.clone(),
        other => format!("{other}::{}", node.op_type),
    }
}

/// A value, and the type of its numbers in the graph.
#[derive(Debug)]
struct Known {
    value: Value,
    holds: DataType,
}

/// The state of reading.
#[derive(Debug, Default)]
struct Lowerer {
    builder: Builder,
    values: HashMap<String, Known>,
    opset: i64,
    /// For how many tokens values for pairs of tokens are made where no table says it.
    positions: usize,
    /// The fewest tokens that a row has: all that it has, where their number is fixed.
    fewest: i64,
}

impl Lowerer {
    /// What all that is made may cost.
    fn ledger(&self) -> &Ledger {
        &self.builder.ledger
    }

    /// # Errors
    /// Once something was refused because of what it costs, or nobody waits any more.
    fn affordable(&self) -> Result<(), EngineError> {
        self.ledger().refused().cloned().map_or(Ok(()), Err)
    }

    fn know(&mut self, name: &str, value: Value, holds: DataType) {
        self.values.insert(name.to_owned(), Known { value, holds });
    }

    /// Drops what node `at` was the last to read, and what nothing reads of what it made.
    fn forget(&mut self, node: &NodeProto, at: usize, last: &HashMap<&str, usize>) {
        for name in node.input.iter().chain(&node.output) {
            if last.get(name.as_str()).is_none_or(|&last| last == at) {
                self.values.remove(name);
            }
        }
    }

    fn weights(&mut self, bundle: &ModelBundle, mut known: HashMap<usize, Constant>) {
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            let value = match known.remove(&index) {
                Some(constant) => Value::constant(constant),
                None => Value::Weight(Weight {
                    index,
                    shape: info.shape.clone(),
                    first_row: 0,
                    transposed: false,
                    scale: None,
                    whole: kind_of(DataType::from(info.dtype)) != Kind::Float,
                    kind: kind_of(DataType::from(info.dtype)),
                }),
            };
            self.know(&info.name, value, DataType::from(info.dtype));
        }
    }

    fn constants(&mut self, graph: &GraphProto) -> Result<(), CompileError> {
        for tensor in &graph.initializer {
            let constant = constant(self.ledger(), tensor);
            self.affordable()?;
            let constant = constant
                .map_err(|why| Unlowered::Graph(format!("initializer {:?}: {why}", tensor.name)))?;
            let holds = DataType::try_from(tensor.data_type).unwrap_or_default();
            self.know(&tensor.name, Value::constant(constant), holds);
        }
        Ok(())
    }

    fn inputs(&mut self, graph: &GraphProto) -> Result<(), Unlowered> {
        for input in &graph.input {
            if self.values.contains_key(&input.name) {
                continue; // a weight that the graph lists among its inputs
            }
            let tensor = input.r#type.as_ref().and_then(|kind| kind.value.as_ref());
            let Some(TypeValue::Tensor(tensor)) = tensor else {
                return Err(Unlowered::Graph(format!(
                    "input {:?} is no tensor",
                    input.name
                )));
            };
            let rank = tensor.shape.as_ref().map_or(2, |shape| shape.dim.len());
            let whole = [DataType::Int64 as i32, DataType::Int32 as i32];
            let wide = wide_of(tensor);
            if wide.is_none() && (rank != 2 || !whole.contains(&tensor.elem_type)) {
                return Err(Unlowered::Graph(format!(
                    "input {:?} is neither [batch, sequence] of whole numbers nor [batch, sequence, width] of f32",
                    input.name
                )));
            }
            let value = if let Some(width) = wide {
                self.fewest = tokens_of(tensor).unwrap_or(1);
                let op = Op::Values(input.name.clone());
                let node = self.builder.push(op, Rows::Tokens, width);
                let axes = [Axis::Unit, Axis::Tokens];
                Value::Data(Data::whole(node, Kind::Float, &axes, &[width]))
            } else if input.name == MASK {
                Value::Uniform {
                    kind: Kind::Whole,
                    value: 1.0,
                    shape: vec![Dim::ONE, Dim::TOKENS],
                }
            } else {
                let op = Op::Input(input.name.clone());
                let node = self.builder.push(op, Rows::Tokens, 1);
                let axes = [Axis::Unit, Axis::Tokens];
                Value::Data(Data::whole(node, Kind::Whole, &axes, &[]))
            };
            let holds = DataType::try_from(tensor.elem_type).unwrap_or_default();
            self.know(&input.name, value, holds);
        }
        Ok(())
    }

    fn node(&mut self, node: &NodeProto) -> Result<(), CompileError> {
        let operator = full_name(node);
        let name = [&node.name].into_iter().chain(&node.output);
        let name = name.into_iter().find(|name| !name.is_empty());
        let name = name.cloned().unwrap_or_default();
        // Where it is refused, or nobody waits any more, the ledger says so.
        let _ = self.ledger().take(Resource::Steps, 1, "the graph");
        self.affordable()?;
        let holds = |name: &String| self.values.get(name).map(|known| known.holds);
        let types = Types::new(&operator, node, node.input.iter().map(holds).collect());
        let inputs = node.input.iter().map(|input| match input.as_str() {
            "" => Ok(None),
            input => match self.values.get(input) {
                Some(known) => Ok(Some(known.value.clone())),
                None => Err(format!("nothing before it makes {input:?}")),
            },
        });
        let inputs = inputs.collect::<Why<Vec<_>>>();
        let inputs = inputs.and_then(|inputs| {
            let own = operator == "GatherElements";
            let known = inputs.into_iter().map(|input| match input {
                Some(input) if !own => self.known_products(input).map(Some),
                other => Ok(other),
            });
            known.collect::<Why<Vec<_>>>()
        });
        let call = inputs.map(|inputs| Call {
            node,
            inputs,
            opset: self.opset,
        });
        let before = self.builder.nodes.len();
        let values = call.and_then(|call| {
            let values = self.operator(&operator, &call).and_then(|values| {
                let all = values.iter().flatten();
                self.within_bounds(before, all.clone())?;
                types.check(&self.builder, call.inputs.iter().flatten(), all)?;
                Ok(values)
            });
            values.map_err(|why| format!("{why} (of {})", call.what()))
        });
        self.affordable()?;
        let values = match values {
            Ok(Some(values)) => values,
            Ok(None) => {
                return Err(Unlowered::Operator {
                    operator,
                    node: name,
                }
                .into());
            }
            Err(why) => {
                return Err(Unlowered::Use {
                    operator,
                    node: name,
                    why,
                }
                .into());
            }
        };
        let holds = types.output;
        for (output, value) in node.output.iter().zip(values) {
            self.know(output, value, holds);
        }
        Ok(())
    }

    /// The values that an operator gives; `None` for one that is not known.
    fn operator(&mut self, operator: &str, call: &Call<'_>) -> Why<Option<Vec<Value>>> {
        let families = [
            Self::elementwise,
            Self::shapes,
            Self::slices,
            Self::tables,
            Self::products,
            Self::reductions,
            Self::composed,
        ];
        for family in families {
            if let Some(values) = family(self, operator, call)? {
                return Ok(Some(values));
            }
        }
        Ok(None)
    }

    /// Refuses what is wider than is worth computing, has no columns at all, or holds whole numbers
    /// that f32 may not hold. `before`: how many nodes there were before the operator.
    fn within_bounds<'v>(&self, before: usize, values: impl Iterator<Item = &'v Value>) -> Why<()> {
        for node in &self.builder.nodes[before..] {
            if node.width == 0 || node.width as u64 > WIDEST {
                return Err(format!("{} columns", node.width));
            }
        }
        for value in values {
            let shape = value.shape();
            if shape.len() > MOST_AXES {
                return Err(format!("{} axes", shape.len()));
            }
            elementwise::no_less_than_nothing(&shape)?;
            let Value::Data(data) = value else { continue };
            within_bounds(&data.axes)?;
            if data.kind == Kind::Whole
                && self.builder.magnitude(data.node) > f64::from(magnitude::EXACT)
            {
                return Err("whole numbers that may pass 2^24, which f32 does not hold".into());
            }
        }
        Ok(())
    }

    fn output(&mut self, name: &str) -> Result<Output, Unlowered> {
        let wrong = |why: String| Unlowered::Graph(format!("output {name:?} {why}"));
        let known = self.values.get(name);
        let value = known.map(|known| known.value.clone());
        let value = value.ok_or_else(|| wrong("is made by nothing".into()))?;
        let Value::Data(data) = value else {
            return Err(wrong(format!("is {}", value.what())));
        };
        let (rest, of_tokens) = match &data.axes[..] {
            [Axis::Unit, Axis::Tokens, rest @ ..] => (rest, true),
            [Axis::Unit, rest @ ..] => (rest, false),
            _ => return Err(wrong("is not one row for each text".into())),
        };
        if rest.contains(&Axis::Tokens) {
            return Err(wrong("is not one row for each text or token".into()));
        }
        let extents = rest.iter().filter_map(|axis| axis.dim().extent()).collect();
        Ok(Output {
            name: name.to_owned(),
            node: self.builder.matrix(&data),
            extents,
            of_tokens,
        })
    }
}

/// What kind of numbers a type holds; halves are computed as floats.
fn kind_of(data_type: DataType) -> Kind {
    match data_type {
        DataType::Float | DataType::Float16 | DataType::Double | DataType::Bfloat16 => Kind::Float,
        DataType::Bool => Kind::Flag,
        _ => Kind::Whole,
    }
}

/// The kind that a cast's `to` names.
fn kind_to(to: i64) -> Why<Kind> {
    let data_type = i32::try_from(to)
        .ok()
        .and_then(|to| DataType::try_from(to).ok());
    match data_type {
        Some(
            known @ (DataType::Float
            | DataType::Float16
            | DataType::Double
            | DataType::Bfloat16
            | DataType::Bool
            | DataType::Int64
            | DataType::Int32
            | DataType::Int16
            | DataType::Int8
            | DataType::Uint8
            | DataType::Uint16
            | DataType::Uint32
            | DataType::Uint64),
        ) => Ok(kind_of(known)),
        _ => Err(format!("element type {to} is not computed with")),
    }
}

/// A tensor of the graph as a constant.
fn constant(ledger: &Ledger, tensor: &TensorProto) -> Why<Constant> {
    let data_type = DataType::try_from(tensor.data_type)
        .map_err(|_| format!("element type {} is unknown", tensor.data_type))?;
    let shape = tensor.dims.iter().map(|&extent| usize::try_from(extent));
    let shape = shape.collect::<Result<_, _>>();
    let shape = shape.map_err(|_| format!("extents {:?}", tensor.dims))?;
    values(ledger, data_type, shape, &tensor.raw_data)
}

/// A weight's bytes as a constant.
pub(crate) fn weight_constant(
    ledger: &Ledger,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> Why<Constant> {
    values(ledger, DataType::from(dtype), shape.to_vec(), bytes)
}

fn values(ledger: &Ledger, data_type: DataType, shape: Vec<usize>, bytes: &[u8]) -> Why<Constant> {
    /// Entered before they are decoded: a byte of the file may become eight.
    fn all<const N: usize>(
        (ledger, bytes): (&Ledger, &[u8]),
        f: impl Fn([u8; N]) -> f64,
    ) -> Why<Arc<Numbers>> {
        let chunks = bytes.as_chunks().0;
        ledger.numbers(chunks.len(), chunks.iter().map(|&chunk| f(chunk)))
    }
    let from = (ledger, bytes);
    let values = match data_type {
        DataType::Float => all(from, |b| f64::from(f32::from_le_bytes(b))),
        DataType::Double => all(from, f64::from_le_bytes),
        DataType::Float16 => all(from, |b| half::f16::from_le_bytes(b).to_f64()),
        DataType::Bfloat16 => all(from, |b| {
            f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
        }),
        DataType::Int64 => all(from, |b| i64::from_le_bytes(b) as f64),
        DataType::Int32 => all(from, |b| f64::from(i32::from_le_bytes(b))),
        DataType::Int16 => all(from, |b| f64::from(i16::from_le_bytes(b))),
        DataType::Uint64 => all(from, |b| u64::from_le_bytes(b) as f64),
        DataType::Uint32 => all(from, |b| f64::from(u32::from_le_bytes(b))),
        DataType::Uint16 => all(from, |b| f64::from(u16::from_le_bytes(b))),
        DataType::Int8 => all(from, |[b]: [u8; 1]| f64::from(b as i8)),
        DataType::Uint8 | DataType::Bool => all(from, |[b]: [u8; 1]| f64::from(b)),
        other => return Err(format!("{other:?} is not computed with")),
    }?;
    if elements(&shape) != Some(values.len()) {
        return Err(format!(
            "shape {shape:?} does not hold {} values",
            values.len()
        ));
    }
    Ok(Constant::new(kind_of(data_type), shape, values))
}
