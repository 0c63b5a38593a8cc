//! Reads an ONNX graph, node by node, into values and a program.

mod call;
mod columns;
mod composed;
mod elementwise;
mod product;
mod reduce;
mod rotary;
mod shape;
mod slice;
mod table;
mod terms;

use std::collections::HashMap;
use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::{DataType, GraphProto, NodeProto, TensorProto, TypeValue};
use isovec_engine::tensor::DType;

use crate::builder::{Builder, WIDEST, within_bounds};
use crate::constant::{Constant, Kind, elements};
use crate::dim::Dim;
use crate::error::{Unlowered, Why};
use crate::magnitude;
use crate::node::{NodeId, Op, Rows};
use crate::value::{Axis, Data, Value, Weight};
use call::Call;

/// The input that says which positions are real. Rows have no others, so it is all ones.
const MASK: &str = isovec_engine::head::MASK;

/// What a graph amounts to.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) builder: Builder,
    /// The graph's outputs, one after another: their node and the extents of a row.
    pub(crate) outputs: Vec<Output>,
}

/// An output of the graph: a row for each text.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name in the graph.
    pub name: String,
    /// The node that it shows all of.
    pub node: NodeId,
    /// The extents of a text's row; their product is the node's width.
    pub extents: Vec<usize>,
}

/// Reads a bundle's graph. `known` are the weights that have been read, by their index.
///
/// # Errors
/// [`Unlowered`], naming the first operator that has no place in a program.
pub(crate) fn lower(
    bundle: &ModelBundle,
    known: &HashMap<usize, Arc<Constant>>,
    positions: usize,
) -> Result<Lowered, Unlowered> {
    let graph = bundle.graph.graph.as_ref();
    let graph = graph.ok_or_else(|| Unlowered::Graph("the file holds no graph".into()))?;
    let opset = bundle
        .graph
        .opset_import
        .iter()
        .find(|set| isovec_engine::onnx::default_domain(&set.domain).is_empty())
        .map_or(1, |set| set.version);
    let mut lowerer = Lowerer {
        builder: Builder::default(),
        values: HashMap::new(),
        opset,
        positions,
    };
    lowerer.weights(bundle, known);
    lowerer.constants(graph)?;
    lowerer.inputs(graph)?;
    for node in &graph.node {
        lowerer.node(node)?;
    }
    let outputs = graph
        .output
        .iter()
        .map(|output| lowerer.output(&output.name));
    let outputs = outputs.collect::<Result<_, _>>()?;
    Ok(Lowered {
        builder: lowerer.builder,
        outputs,
    })
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

/// The state of reading.
#[derive(Debug, Default)]
struct Lowerer {
    builder: Builder,
    values: HashMap<String, Value>,
    opset: i64,
    /// For how many tokens values for pairs of tokens are made where no table says it.
    positions: usize,
}

impl Lowerer {
    fn weights(&mut self, bundle: &ModelBundle, known: &HashMap<usize, Arc<Constant>>) {
        for (index, info) in bundle.weights.weights().iter().enumerate() {
            let value = match known.get(&index) {
                Some(constant) => Value::Constant(Arc::clone(constant)),
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
            self.values.insert(info.name.clone(), value);
        }
    }

    fn constants(&mut self, graph: &GraphProto) -> Result<(), Unlowered> {
        for tensor in &graph.initializer {
            let constant = constant(tensor)
                .map_err(|why| Unlowered::Graph(format!("initializer {:?}: {why}", tensor.name)))?;
            self.values
                .insert(tensor.name.clone(), Value::constant(constant));
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
            if rank != 2 || !whole.contains(&tensor.elem_type) {
                return Err(Unlowered::Graph(format!(
                    "input {:?} is not [batch, sequence] of whole numbers",
                    input.name
                )));
            }
            let value = if input.name == MASK {
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
            self.values.insert(input.name.clone(), value);
        }
        Ok(())
    }

    fn node(&mut self, node: &NodeProto) -> Result<(), Unlowered> {
        let operator = full_name(node);
        let name = [&node.name].into_iter().chain(&node.output);
        let name = name.into_iter().find(|name| !name.is_empty());
        let name = name.cloned().unwrap_or_default();
        let inputs = node.input.iter().map(|input| match input.as_str() {
            "" => Ok(None),
            input => match self.values.get(input) {
                Some(value) => Ok(Some(value.clone())),
                None => Err(format!("nothing before it makes {input:?}")),
            },
        });
        let call = inputs.collect::<Why<Vec<_>>>().map(|inputs| Call {
            node,
            inputs,
            opset: self.opset,
        });
        let before = self.builder.nodes.len();
        let values = call.and_then(|call| match self.operator(&operator, &call) {
            Ok(None) => Ok(None),
            Ok(Some(values)) => Ok(Some(values)),
            Err(why) => Err(format!("{why} (of {})", call.what())),
        });
        let values = values.and_then(|values| {
            self.within_bounds(before, values.iter().flatten())?;
            Ok(values)
        });
        let values = match values {
            Ok(Some(values)) => values,
            Ok(None) => {
                return Err(Unlowered::Operator {
                    operator,
                    node: name,
                });
            }
            Err(why) => {
                return Err(Unlowered::Use {
                    operator,
                    node: name,
                    why,
                });
            }
        };
        for (output, value) in node.output.iter().zip(values) {
            self.values.insert(output.clone(), value);
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
        let value = self.values.get(name).cloned();
        let value = value.ok_or_else(|| wrong("is made by nothing".into()))?;
        let Value::Data(data) = value else {
            return Err(wrong(format!("is {}", value.what())));
        };
        let rest = match data.axes.split_first() {
            Some((Axis::Unit, rest)) if !rest.contains(&Axis::Tokens) => rest,
            _ => return Err(wrong("is not one row for each text".into())),
        };
        let extents = rest.iter().filter_map(|axis| axis.dim().known());
        let extents = extents.map(|extent| extent as usize).collect();
        Ok(Output {
            name: name.to_owned(),
            node: self.builder.matrix(&data),
            extents,
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
fn constant(tensor: &TensorProto) -> Why<Constant> {
    let data_type = DataType::try_from(tensor.data_type)
        .map_err(|_| format!("element type {} is none", tensor.data_type))?;
    let shape = tensor.dims.iter().map(|&extent| usize::try_from(extent));
    let shape = shape.collect::<Result<_, _>>();
    let shape = shape.map_err(|_| format!("extents {:?}", tensor.dims))?;
    values(data_type, shape, &tensor.raw_data)
}

/// A weight's bytes as a constant.
pub(crate) fn weight_constant(dtype: DType, shape: &[usize], bytes: &[u8]) -> Why<Constant> {
    values(DataType::from(dtype), shape.to_vec(), bytes)
}

fn values(data_type: DataType, shape: Vec<usize>, bytes: &[u8]) -> Why<Constant> {
    fn all<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|&chunk| f(chunk)).collect()
    }
    let values = match data_type {
        DataType::Float => all(bytes, |b| f64::from(f32::from_le_bytes(b))),
        DataType::Double => all(bytes, f64::from_le_bytes),
        DataType::Float16 => all(bytes, |b| half::f16::from_le_bytes(b).to_f64()),
        DataType::Bfloat16 => all(bytes, |b| {
            f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
        }),
        DataType::Int64 => all(bytes, |b| i64::from_le_bytes(b) as f64),
        DataType::Int32 => all(bytes, |b| f64::from(i32::from_le_bytes(b))),
        DataType::Int16 => all(bytes, |b| f64::from(i16::from_le_bytes(b))),
        DataType::Uint64 => all(bytes, |b| u64::from_le_bytes(b) as f64),
        DataType::Uint32 => all(bytes, |b| f64::from(u32::from_le_bytes(b))),
        DataType::Uint16 => all(bytes, |b| f64::from(u16::from_le_bytes(b))),
        DataType::Int8 => all(bytes, |[b]: [u8; 1]| f64::from(b as i8)),
        DataType::Uint8 | DataType::Bool => all(bytes, |[b]: [u8; 1]| f64::from(b)),
        other => return Err(format!("{other:?} is not computed with")),
    };
    if elements(&shape) != Some(values.len()) {
        return Err(format!(
            "shape {shape:?} does not hold {} values",
            values.len()
        ));
    }
    Ok(Constant::new(kind_of(data_type), shape, values))
}
