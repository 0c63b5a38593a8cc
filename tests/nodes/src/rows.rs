//! A test's graph as part of an encoder, for engines that run nothing else.
//!
//! An encoder's values are rows: one for each token of a text, or one for the text. So the test's
//! inputs arrive as those do, looked up in an embedding table by ids; the other inputs are constants,
//! as weights are. One axis of the input stands for the tokens ([`Layout::Tokens`]: row `i` of the table
//! is what the axis has at `i`), or all of the input is one text's row ([`Layout::Row`]). What comes
//! out is given back as an encoder gives vectors, a row for the text: token by token, by picking one and
//! adding the others as zeros, or all at once.
//!
//! Every such graph means the same as the test's own by the words of ONNX. Which of them an engine takes
//! is the engine's affair: the first that its reader does not refuse is run, and must be right.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::description::Dim;
use isovec_engine::engine::{Batch, RunOutput};
use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{
    DataType, GraphProto, ModelProto, OperatorSetIdProto, TensorProto,
};
use isovec_engine::tensor::{DType, NamedTensor, Tensor};
use isovec_model::onnx::GraphBuilder;
use isovec_model::onnx::builder::{int, ints};

use crate::cases::Case;
use crate::compare::compare;
use crate::direct::{OWN, bundle};
use crate::values::Numbers;

/// The input of ids.
const IDS: &str = "isovec.ids";

/// The most tokens that are given back one by one: each is picked from all of them, which takes the square of their number.
const MOST_TOKENS: i64 = 1000;

/// What the rows of a test's input are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// This axis of the first input that arrives so is the tokens of a text.
    Tokens(usize),
    /// All of it is a row of a text of one token.
    Row,
}

/// How an output is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readout {
    /// This axis of it is the tokens.
    Tokens(usize),
    /// It has no axis of tokens.
    Whole,
    /// The same, added to a zero that is computed: for what a reader knows before any text is there.
    Known,
}

/// One way to put a test into an encoder.
#[derive(Debug, Clone)]
pub struct Wrapping {
    /// How the inputs arrive.
    pub layout: Layout,
    /// Which of them: the first decides what the tokens are.
    pub data: Vec<usize>,
    /// Which output is asked for.
    pub output: usize,
    /// How it is given back.
    pub readout: Readout,
}

/// A graph to load, what to feed it, and what has to come out.
#[derive(Debug)]
pub struct Wrapped {
    /// The graph.
    pub bundle: ModelBundle,
    /// The ids.
    ids: Vec<i64>,
    readout: Readout,
    wanted: Numbers,
}

/// All ways to put a test into an encoder and ask for an output of it.
pub fn wrappings(case: &Case, output: usize) -> Vec<Wrapping> {
    let mut all = Vec::new();
    let Some(wanted) = &case.outputs[output].tensor else {
        return all;
    };
    let shape = |at: usize| -> &[i64] {
        let tensor = case.inputs[at].tensor.as_ref();
        tensor.map_or(&[], |tensor| &tensor.dims)
    };
    let arrives: Vec<usize> = (0..case.inputs.len())
        .filter(|&at| may_arrive(case, at))
        .collect();
    let mut push = |layout, data: Vec<usize>, readout| {
        all.push(Wrapping {
            layout,
            data,
            output,
            readout,
        });
    };
    for &first in &arrives {
        for (axis, &extent) in shape(first).iter().enumerate().filter(|(_, e)| **e > 1) {
            // Those that have the same axis, counted from the end as broadcasting does.
            let along = |other: usize| own_axis(shape(first).len(), axis, shape(other).len());
            let with = |other: usize| along(other).is_some_and(|at| shape(other)[at] == extent);
            let others = arrives
                .iter()
                .copied()
                .filter(|&at| at != first && with(at));
            let together: Vec<usize> = [first].into_iter().chain(others).collect();
            let mut sets = vec![together, vec![first]];
            sets.dedup();
            let dims = wanted.dims.iter().enumerate();
            let tokens = dims.filter(|(_, own)| **own == extent && extent <= MOST_TOKENS);
            let readouts = tokens.map(|(at, _)| Readout::Tokens(at));
            let readouts: Vec<Readout> = readouts.chain([Readout::Whole]).collect();
            for data in sets {
                for &readout in &readouts {
                    push(Layout::Tokens(axis), data.clone(), readout);
                }
            }
        }
    }
    for &first in &arrives {
        let others = arrives.iter().copied().filter(|&at| at != first);
        let mut sets = vec![[first].into_iter().chain(others).collect(), vec![first]];
        sets.dedup();
        for data in sets {
            push(Layout::Row, data.clone(), Readout::Whole);
            // What is known without its first input would say nothing of the operator.
            if first == arrives[0] {
                push(Layout::Row, data, Readout::Known);
            }
        }
    }
    if arrives.is_empty() {
        push(Layout::Row, Vec::new(), Readout::Known);
    }
    all
}

/// The axis of a value of `rank` axes that meets `axis` of one with `of` axes; `None` where it has
/// none.
fn own_axis(of: usize, axis: usize, rank: usize) -> Option<usize> {
    (axis + rank).checked_sub(of)
}

/// Whether an input can be rows of an embedding table.
fn may_arrive(case: &Case, at: usize) -> bool {
    let Some(tensor) = &case.inputs[at].tensor else {
        return false;
    };
    width(tensor.data_type).is_some() && tensor.int32_data.is_empty() && !tensor.dims.contains(&0)
}

/// Bytes of an element.
fn width(data_type: i32) -> Option<usize> {
    Some(match DataType::try_from(data_type).ok()? {
        DataType::Double | DataType::Int64 | DataType::Uint64 => 8,
        DataType::Float | DataType::Int32 | DataType::Uint32 => 4,
        DataType::Float16 | DataType::Bfloat16 | DataType::Int16 | DataType::Uint16 => 2,
        DataType::Int8 | DataType::Uint8 | DataType::Bool => 1,
        _ => return None,
    })
}

impl Wrapping {
    /// The graph.
    ///
    /// # Errors
    /// In words, why there is none.
    pub fn wrap(&self, case: &Case) -> Result<Wrapped, String> {
        let Some(wanted) = &case.outputs[self.output].tensor else {
            return Err("an output is no tensor".into());
        };
        let wanted = Numbers::of(wanted)?;
        let first = self
            .data
            .first()
            .and_then(|&at| case.inputs[at].tensor.as_ref());
        let tokens = match (self.layout, first) {
            (Layout::Tokens(axis), Some(first)) => first.dims[axis],
            _ => 1,
        };
        let own = case.model.graph.as_ref().ok_or("it holds no graph")?;
        let mut model = ModelProto {
            ir_version: case.model.ir_version,
            opset_import: case.model.opset_import.clone(),
            functions: case.model.functions.clone(),
            ..ModelProto::default()
        };
        let opset = default_set(&mut model);
        let mut graph = GraphProto {
            initializer: own.initializer.clone(),
            ..GraphProto::default()
        };
        let mut g = GraphBuilder::new(&mut graph, OWN);
        let dims = ["batch", "sequence"].map(|name| Dim::Symbolic(name.into()));
        g.input(IDS, DType::I64, &dims);
        for (at, given) in case.inputs.iter().enumerate() {
            let tensor = given.tensor.as_ref().ok_or("an input is no tensor")?;
            if self.data.contains(&at) {
                self.arrive(
                    &mut g,
                    &given.name,
                    tensor,
                    first.map_or(0, |t| t.dims.len()),
                )?;
            } else {
                let name = given.name.clone();
                let constant = TensorProto {
                    name,
                    ..tensor.clone()
                };
                g.graph().initializer.push(constant);
            }
        }
        g.graph().node.extend(own.node.iter().cloned());
        let y = &case.outputs[self.output].name;
        let y = g.node(
            "Cast",
            &[y],
            vec![int("to", i64::from(DataType::Float as i32))],
        );
        self.give_back(&mut g, &y, &wanted.shape, tokens, opset);
        model.graph = Some(graph);
        Ok(Wrapped {
            bundle: bundle(&model)?,
            ids: (0..tokens).collect(),
            readout: self.readout,
            wanted,
        })
    }

    /// Makes an input of the test what ids look up.
    fn arrive(
        &self,
        g: &mut GraphBuilder<'_>,
        name: &str,
        tensor: &TensorProto,
        first_rank: usize,
    ) -> Result<(), String> {
        let own = &tensor.dims;
        let table = format!("{OWN}table.{name}");
        let axis = match self.layout {
            Layout::Tokens(axis) => own_axis(first_rank, axis, own.len()),
            Layout::Row => None,
        };
        let (rest, raw_data) = match axis {
            Some(axis) => (
                [&own[..axis], &own[axis + 1..]].concat(),
                axis_first(tensor, axis)
                    .ok_or("an input is not as large as its shape")?
                    .into(),
            ),
            None => (vec![own.iter().product()], tensor.raw_data.clone()),
        };
        let rows = axis.map_or(1, |axis| own[axis]);
        g.graph().initializer.push(TensorProto {
            name: table.clone(),
            data_type: tensor.data_type,
            dims: [&[rows], &rest[..]].concat(),
            raw_data,
            ..TensorProto::default()
        });
        let x = g.node("Gather", &[&table, IDS], vec![int("axis", 0)]);
        let Some(axis) = axis else {
            let last = g.i64s(&[], &[-1]);
            let row = g.node("Gather", &[&x, &last], vec![int("axis", 1)]);
            let shape = g.ints(own);
            g.named_node("Reshape", &[&row, &shape], name, Vec::new());
            return Ok(());
        };
        // The text goes: [1, n, rest] to [n, rest], and the tokens to where they belong.
        let shape = g.ints(&[&[-1], &rest[..]].concat());
        if axis == 0 {
            g.named_node("Reshape", &[&x, &shape], name, Vec::new());
            return Ok(());
        }
        let x = g.node("Reshape", &[&x, &shape], Vec::new());
        let mut order: Vec<i64> = (1..own.len() as i64).collect();
        order.insert(axis, 0);
        g.named_node("Transpose", &[&x], name, vec![ints("perm", &order)]);
        Ok(())
    }

    /// Makes rows for the text of what the test computes.
    fn give_back(
        &self,
        g: &mut GraphBuilder<'_>,
        y: &str,
        shape: &[usize],
        tokens: i64,
        opset: i64,
    ) {
        let fixed = |extents: &[usize]| -> Vec<Dim> {
            let extents = extents.iter().map(|&extent| Dim::Fixed(extent));
            [Dim::Symbolic("batch".into())]
                .into_iter()
                .chain(extents)
                .collect()
        };
        let output = |g: &mut GraphBuilder<'_>, y: &str, extents: &[usize], number: i64| {
            let name = out(number);
            over(g, "Unsqueeze", y, 0, &name, opset);
            g.output(&name, DType::F32, &fixed(extents));
        };
        let axis = match self.readout {
            Readout::Tokens(axis) => axis,
            Readout::Whole => return output(g, y, shape, 0),
            Readout::Known => {
                let zeros = g.f32s(&[1, 1], &[0.0]);
                let zero = g.node("Gather", &[&zeros, IDS], vec![int("axis", 0)]);
                let last = g.i64s(&[], &[-1]);
                let zero = g.node("Gather", &[&zero, &last], vec![int("axis", 1)]);
                // Of as many axes as there are, so that it does not add one.
                let ones = g.ints(&vec![1; shape.len()]);
                let zero = g.node("Reshape", &[&zero, &ones], Vec::new());
                let extents: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
                let extents = g.ints(&extents);
                let zero = g.node("Expand", &[&zero, &extents], Vec::new());
                let sum = g.node("Add", &[y, &zero], Vec::new());
                return output(g, &sum, shape, 0);
            }
        };
        let mut places = vec![1; shape.len()];
        places[axis] = -1;
        let places = g.ints(&places);
        let places = g.node("Reshape", &[IDS, &places], Vec::new());
        let zero = g.f32(0.0);
        let mut rest = shape.to_vec();
        rest.remove(axis);
        for token in 0..tokens {
            let number = g.i64s(&[], &[token]);
            let here = g.node("Equal", &[&places, &number], Vec::new());
            let picked = g.node("Where", &[&here, y, &zero], Vec::new());
            let sum = g.fresh("sum");
            over(g, "ReduceSum", &picked, axis as i64, &sum, opset);
            output(g, &sum, &rest, token);
        }
    }
}

/// The name of an output.
fn out(number: i64) -> String {
    format!("{OWN}out.{number}")
}

/// An operator along one axis, which it takes as an input since operator set 13.
fn over(g: &mut GraphBuilder<'_>, op: &str, x: &str, axis: i64, y: &str, opset: i64) {
    let mut attributes = match op {
        "ReduceSum" => vec![int("keepdims", 0)],
        _ => Vec::new(),
    };
    if opset < 13 {
        attributes.push(ints("axes", &[axis]));
        g.named_node(op, &[x], y, attributes);
    } else {
        let axis = g.ints(&[axis]);
        g.named_node(op, &[x, &axis], y, attributes);
    }
}

/// The version of the default operator set, which is added where there is none.
fn default_set(model: &mut ModelProto) -> i64 {
    let mut sets = model.opset_import.iter();
    let known = sets.find(|set| default_domain(&set.domain).is_empty());
    if let Some(known) = known {
        return known.version;
    }
    model.opset_import.push(OperatorSetIdProto {
        domain: String::new(),
        version: 17,
    });
    17
}

/// A tensor's bytes with one axis before the others.
fn axis_first(tensor: &TensorProto, axis: usize) -> Option<Vec<u8>> {
    let size = width(tensor.data_type)?;
    let extent = |dims: &[i64]| dims.iter().product::<i64>() as usize;
    let (outer, own) = (extent(&tensor.dims[..axis]), tensor.dims[axis] as usize);
    let inner = extent(&tensor.dims[axis + 1..]) * size;
    let mut bytes = Vec::with_capacity(tensor.raw_data.len());
    for at in 0..own {
        for before in 0..outer {
            let from = (before * own + at) * inner;
            bytes.extend_from_slice(tensor.raw_data.get(from..from + inner)?);
        }
    }
    Some(bytes)
}

impl Wrapped {
    /// One text.
    ///
    /// # Errors
    /// In words, when there is no memory for it.
    pub fn batch(&self) -> Result<Batch, String> {
        let ids = Tensor::from_slice(&[1, self.ids.len()], &self.ids);
        let ids = ids.map_err(|error| error.to_string())?;
        Ok(Batch {
            inputs: vec![NamedTensor::new(IDS, ids)],
            row_lengths: vec![self.ids.len()],
            ..Batch::default()
        })
    }

    /// Whether the rows are what they have to be.
    ///
    /// # Errors
    /// In words, what differs.
    pub fn compare(&self, output: &RunOutput) -> Result<(), String> {
        let rows = |number: i64, shape: &[usize]| -> Result<Vec<f64>, String> {
            let tensor = output
                .output(&out(number))
                .ok_or("an output did not come")?;
            let wanted = [&[1], shape].concat();
            if tensor.shape() != wanted {
                return Err(format!("shape {:?} for {wanted:?}", tensor.shape()));
            }
            let values = tensor
                .as_slice::<f32>()
                .map_err(|error| error.to_string())?;
            Ok(values.iter().map(|&value| f64::from(value)).collect())
        };
        let shape = &self.wanted.shape;
        let values = match self.readout {
            Readout::Whole | Readout::Known => rows(0, shape)?,
            Readout::Tokens(axis) => {
                let mut rest = shape.clone();
                rest.remove(axis);
                let parts = (0..shape[axis] as i64).map(|token| rows(token, &rest));
                let parts: Vec<Vec<f64>> = parts.collect::<Result<_, _>>()?;
                let inner: usize = shape[axis + 1..].iter().product();
                let outer: usize = shape[..axis].iter().product();
                let mut values = Vec::with_capacity(self.wanted.values.len());
                for before in 0..outer {
                    for part in &parts {
                        values.extend_from_slice(&part[before * inner..(before + 1) * inner]);
                    }
                }
                values
            }
        };
        let float = |values| Numbers {
            data_type: DataType::Float,
            shape: shape.clone(),
            values,
        };
        compare(&float(values), &float(self.wanted.values.clone()))
    }
}
