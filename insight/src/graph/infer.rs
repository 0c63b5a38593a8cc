//! The shapes of a graph's values: those in the file, and those that follow from them.
//!
//! ONNX Runtime writes all known shapes into the graph that it optimised. A model's file often has only those of
//! inputs and outputs. For such files a few rules for the operators of encoders reach nearly every value. Other
//! shapes are shown as unknown.

use std::collections::HashMap;

use isovec_engine::description::{declared_extent, describe_value};
use isovec_engine::onnx::proto::{
    DataType, GraphProto, NodeProto, TensorProto, TypeValue, ValueInfoProto,
};
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;

use super::Dim;

/// An extent that nobody knows.
const UNKNOWN: &str = "?";

/// Axes that a value has at most. No model has as many, but a chain of `Gather(x, x)` would double them at each node.
const MOST_AXES: usize = 64;

/// What is known of a graph's values, by name.
#[derive(Debug, Default)]
pub(super) struct Values {
    dims: HashMap<String, Vec<Dim>>,
    /// Bytes of a number.
    size: HashMap<String, u64>,
    /// Lists of whole numbers that are constants: shapes and axes.
    known: HashMap<String, Vec<i64>>,
}

impl Values {
    pub(super) fn dims(&self, name: &str) -> Option<&[Dim]> {
        self.dims.get(name).map(Vec::as_slice)
    }

    /// Takes a value's extents; of one with more than [`MOST_AXES`] they stay unknown.
    fn set(&mut self, name: &str, dims: Vec<Dim>) {
        if dims.len() <= MOST_AXES {
            self.dims.insert(name.into(), dims);
        }
    }

    /// The same, where nothing is known of the value yet.
    fn declare(&mut self, name: &str, dims: Vec<Dim>) {
        if !self.dims.contains_key(name) {
            self.set(name, dims);
        }
    }
}

/// A node's attributes by name.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'n>(pub(super) &'n NodeProto);

impl Attributes<'_> {
    pub(super) fn int(self, name: &str) -> Option<i64> {
        let mut all = self.0.attribute.iter();
        all.find(|one| one.name == name).map(|one| one.i)
    }

    pub(super) fn text(self, name: &str) -> Option<String> {
        let mut all = self.0.attribute.iter();
        let found = all.find(|one| one.name == name)?;
        Some(String::from_utf8_lossy(&found.s).into_owned())
    }

    fn ints(self, name: &str) -> Option<Vec<i64>> {
        let mut all = self.0.attribute.iter();
        all.find(|one| one.name == name).map(|one| one.ints.clone())
    }
}

/// What symbolic extents come to in a batch.
#[derive(Debug)]
pub(super) struct Sizes(HashMap<String, u64>);

impl Sizes {
    /// Of an encoder's inputs: axis 0 is the text, axis 1 the token.
    pub(super) fn new(graph: &GraphProto, rows: usize, tokens: usize) -> Self {
        let mut sizes = HashMap::new();
        let mut take = |dims: &[Dim]| {
            for (dim, size) in dims.iter().zip([rows, tokens]) {
                if let Dim::Symbolic(name) = dim
                    && name != UNKNOWN
                {
                    sizes.entry(name.clone()).or_insert(size as u64);
                }
            }
        };
        // Ids first: of them this holds whatever the extents are called, and where they have no name.
        for input in graph.input.iter().map(describe_value) {
            if let (Some(DType::I64 | DType::I32), Some(dims @ [_, _])) =
                (input.dtype, input.dims.as_deref())
            {
                take(dims);
            }
        }
        for input in &graph.input {
            if let Some((dims, _)) = declared(input) {
                take(&dims);
            }
        }
        Self(sizes)
    }

    pub(super) fn extent(&self, dim: &Dim) -> Option<u64> {
        match dim {
            Dim::Fixed(extent) => Some(*extent as u64),
            Dim::Symbolic(name) => self.0.get(name).copied(),
        }
    }

    pub(super) fn numbers(&self, dims: &[Dim]) -> Option<u64> {
        let mut extents = dims.iter().map(|dim| self.extent(dim));
        extents.try_fold(1_u64, |product, extent| {
            Some(product.saturating_mul(extent?))
        })
    }

    pub(super) fn bytes(&self, values: &Values, name: &str) -> Option<u64> {
        let size = values.size.get(name).copied()?;
        Some(self.numbers(values.dims(name)?)?.saturating_mul(size))
    }
}

/// Finds what can be known of all values.
pub(super) fn infer(graph: &GraphProto, weights: &[WeightInfo]) -> Values {
    let mut values = Values::default();
    for info in weights {
        let dims = info.shape.iter().map(|&extent| Dim::Fixed(extent));
        values.set(&info.name, dims.collect());
        values
            .size
            .insert(info.name.clone(), info.dtype.size() as u64);
    }
    for tensor in &graph.initializer {
        take_constant(&mut values, &tensor.name, tensor);
    }
    // An input's unknown extents have names, by which `Sizes` knows those of ids.
    for input in graph.input.iter().map(describe_value) {
        if let Some(dims) = input.dims {
            values.declare(&input.name, dims);
        }
    }
    let declarations = graph
        .input
        .iter()
        .chain(&graph.value_info)
        .chain(&graph.output)
        // Operands that are left out are read by the empty name.
        .filter(|value| !value.name.is_empty());
    for value in declarations {
        if let Some((dims, size)) = declared(value) {
            values.declare(&value.name, dims);
            values.size.entry(value.name.clone()).or_insert(size);
        }
    }
    // Nodes are mostly in order; what is not is found when the walk is repeated.
    for _ in 0..2 {
        for node in &graph.node {
            step(&mut values, node);
        }
    }
    values
}

/// The extents that a value is declared with, and the bytes of a number.
fn declared(value: &ValueInfoProto) -> Option<(Vec<Dim>, u64)> {
    let Some(TypeValue::Tensor(tensor)) = value.r#type.as_ref()?.value.as_ref() else {
        return None;
    };
    let dims = tensor.shape.as_ref()?.dim.iter();
    let dims =
        dims.map(|dim| declared_extent(dim).unwrap_or_else(|| Dim::Symbolic(UNKNOWN.into())));
    Some((dims.collect(), bytes_of(tensor.elem_type)))
}

/// Bytes of a number of a type of the format's; 4 for those that isovec does not carry.
fn bytes_of(data_type: i32) -> u64 {
    match DataType::try_from(data_type) {
        Ok(DataType::Bool) => 1,
        Ok(DataType::Double) => 8,
        Ok(known) => DType::try_from(known).map_or(4, |dtype| dtype.size() as u64),
        Err(_) => 4,
    }
}

fn take_constant(values: &mut Values, name: &str, tensor: &TensorProto) {
    let dims = tensor
        .dims
        .iter()
        .map(|&extent| Dim::Fixed(extent.max(0) as usize));
    values.set(name, dims.collect());
    values.size.insert(name.into(), bytes_of(tensor.data_type));
    let numbers: Vec<i64> = match DataType::try_from(tensor.data_type) {
        Ok(DataType::Int64) if tensor.raw_data.is_empty() => tensor.int64_data.clone(),
        Ok(DataType::Int64) => {
            let words = tensor.raw_data.as_chunks().0.iter();
            words.map(|&word| i64::from_le_bytes(word)).collect()
        }
        _ => return,
    };
    // More than this are no shape and no axes.
    if numbers.len() <= MOST_AXES {
        values.known.insert(name.into(), numbers);
    }
}

/// Finds the extents of a node's first result, and its type, where they are not known yet.
fn step(values: &mut Values, node: &NodeProto) {
    let Some(output) = node.output.first().filter(|name| !name.is_empty()) else {
        return;
    };
    if let ("Constant", Some(tensor)) = (
        node.op_type.as_str(),
        node.attribute
            .iter()
            .find_map(|attribute| attribute.t.as_ref()),
    ) {
        take_constant(values, output, tensor);
        return;
    }
    if !values.dims.contains_key(output)
        && let Some(dims) = extents(values, node)
    {
        values.set(output, dims);
    }
    if !values.size.contains_key(output) {
        let size = match node.op_type.as_str() {
            "Cast" => Attributes(node).int("to").map(|to| bytes_of(to as i32)),
            "Shape" => Some(8),
            "Equal" | "Greater" | "Less" | "Not" | "And" | "Or" | "LessOrEqual"
            | "GreaterOrEqual" => Some(1),
            "Where" => node
                .input
                .get(1)
                .and_then(|name| values.size.get(name))
                .copied(),
            _ => node
                .input
                .first()
                .and_then(|name| values.size.get(name))
                .copied(),
        };
        if let Some(size) = size {
            values.size.insert(output.clone(), size);
        }
    }
}

/// The rules, as the specification of the operators has them
/// (<https://onnx.ai/onnx/operators/>; those of Microsoft's set:
/// <https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md>).
fn extents(values: &Values, node: &NodeProto) -> Option<Vec<Dim>> {
    let of = |at: usize| values.dims(node.input.get(at)?);
    let known = |at: usize| values.known.get(node.input.get(at)?);
    let attributes = Attributes(node);
    let axes = |at: usize| attributes.ints("axes").or_else(|| known(at).cloned());
    let place = |axis: i64, rank: usize| {
        let axis = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(axis).ok()
    };
    match node.op_type.as_str() {
        "MatMul" | "FusedMatMul" => {
            let (mut a, mut b) = (of(0)?.to_vec(), of(1)?.to_vec());
            let swap = |dims: &mut Vec<Dim>, flag: &str| {
                let rank = dims.len();
                if attributes.int(flag) == Some(1) && rank > 1 {
                    dims.swap(rank - 1, rank - 2);
                }
            };
            swap(&mut a, "transA");
            swap(&mut b, "transB");
            if a.len() < 2 || b.len() < 2 {
                return None;
            }
            let (rows, columns) = (a[a.len() - 2].clone(), b[b.len() - 1].clone());
            let mut dims = broadcast(&a[..a.len() - 2], &b[..b.len() - 2]);
            dims.extend([rows, columns]);
            Some(dims)
        }
        "Gemm" => {
            let (a, b) = (of(0)?, of(1)?);
            let row = usize::from(attributes.int("transA") == Some(1));
            let column = usize::from(attributes.int("transB") != Some(1));
            Some(vec![a.get(row)?.clone(), b.get(column)?.clone()])
        }
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min" | "Equal" | "Greater"
        | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Mod" => {
            Some(broadcast(of(0)?, of(1)?))
        }
        "Where" => Some(broadcast(of(0)?, &broadcast(of(1)?, of(2)?))),
        "Transpose" => {
            let dims = of(0)?;
            match attributes.ints("perm") {
                Some(order) => {
                    let moved = order
                        .iter()
                        .map(|&axis| dims.get(place(axis, dims.len())?).cloned());
                    moved.collect()
                }
                None => Some(dims.iter().rev().cloned().collect()),
            }
        }
        "Gather" => {
            let (table, ids) = (of(0)?, of(1)?);
            let axis = place(attributes.int("axis").unwrap_or(0), table.len())?;
            let mut dims = table.get(..axis)?.to_vec();
            dims.extend_from_slice(ids);
            dims.extend_from_slice(table.get(axis + 1..)?);
            Some(dims)
        }
        "Unsqueeze" => {
            let axes = axes(1)?;
            let mut dims = of(0)?.to_vec();
            let rank = dims.len() + axes.len();
            if rank > MOST_AXES {
                return None;
            }
            let mut places = axes
                .iter()
                .map(|&axis| place(axis, rank))
                .collect::<Option<Vec<_>>>()?;
            places.sort_unstable();
            for at in places {
                if at > dims.len() {
                    return None;
                }
                dims.insert(at, Dim::Fixed(1));
            }
            Some(dims)
        }
        "Squeeze" => {
            let dims = of(0)?;
            let axes = axes(1)?;
            let gone = axes
                .iter()
                .map(|&axis| place(axis, dims.len()))
                .collect::<Option<Vec<_>>>()?;
            let kept = dims.iter().enumerate().filter(|(at, _)| !gone.contains(at));
            Some(kept.map(|(_, dim)| dim.clone()).collect())
        }
        "Slice" => {
            let mut dims = of(0)?.to_vec();
            let rank = dims.len();
            let axes = known(3).cloned().or_else(|| attributes.ints("axes"));
            for axis in axes.unwrap_or_else(|| (0..rank as i64).collect()) {
                *dims.get_mut(place(axis, rank)?)? = Dim::Symbolic(UNKNOWN.into());
            }
            Some(dims)
        }
        "Reshape" => reshaped(of(0)?, known(1)?),
        "Shape" => Some(vec![Dim::Fixed(of(0)?.len())]),
        name if name.starts_with("Reduce") => {
            let dims = of(0)?;
            let axes = axes(1).unwrap_or_else(|| (0..dims.len() as i64).collect());
            let gone = axes
                .iter()
                .map(|&axis| place(axis, dims.len()))
                .collect::<Option<Vec<_>>>()?;
            let keep = attributes.int("keepdims") != Some(0);
            let kept = dims
                .iter()
                .enumerate()
                .filter_map(|(at, dim)| match gone.contains(&at) {
                    true => keep.then_some(Dim::Fixed(1)),
                    false => Some(dim.clone()),
                });
            Some(kept.collect())
        }
        "Abs"
        | "Cast"
        | "Clip"
        | "Cos"
        | "CumSum"
        | "Dropout"
        | "Erf"
        | "Exp"
        | "FastGelu"
        | "Gelu"
        | "BiasGelu"
        | "Identity"
        | "LayerNormalization"
        | "Log"
        | "MultiHeadAttention"
        | "Neg"
        | "Not"
        | "QuickGelu"
        | "Reciprocal"
        | "Relu"
        | "RMSNormalization"
        | "Sigmoid"
        | "SimplifiedLayerNormalization"
        | "Sin"
        | "SkipLayerNormalization"
        | "SkipSimplifiedLayerNormalization"
        | "Softmax"
        | "Sqrt"
        | "Tanh"
        | "LpNormalization" => Some(of(0)?.to_vec()),
        _ => None,
    }
}

/// Extents of two values that are combined number by number, the shorter one's behind ones.
fn broadcast(a: &[Dim], b: &[Dim]) -> Vec<Dim> {
    let rank = a.len().max(b.len());
    let one = Dim::Fixed(1);
    let at = |dims: &[Dim], place: usize| {
        let missing = rank - dims.len();
        place
            .checked_sub(missing)
            .map_or(one.clone(), |place| dims[place].clone())
    };
    let dims = (0..rank).map(|place| match (at(a, place), at(b, place)) {
        (Dim::Fixed(1), other) | (other, Dim::Fixed(1)) => other,
        (fixed @ Dim::Fixed(_), _) | (_, fixed @ Dim::Fixed(_)) => fixed,
        (Dim::Symbolic(name), other) if name == UNKNOWN => other,
        (known, _) => known,
    });
    dims.collect()
}

/// A value's extents in another form: 0 keeps an extent, -1 is what is left.
fn reshaped(dims: &[Dim], wanted: &[i64]) -> Option<Vec<Dim>> {
    let mut shape = Vec::with_capacity(wanted.len());
    for (at, &extent) in wanted.iter().enumerate() {
        shape.push(match extent {
            0 => dims.get(at)?.clone(),
            -1 => Dim::Symbolic(UNKNOWN.into()),
            extent => Dim::Fixed(usize::try_from(extent).ok()?),
        });
    }
    let Some(open) = wanted.iter().position(|&extent| extent == -1) else {
        return Some(shape);
    };
    // What is left: the old extents that the new ones do not account for.
    let fixed = |dims: &[Dim]| {
        let extents = dims.iter().filter_map(|dim| match dim {
            Dim::Fixed(extent) => Some(*extent),
            Dim::Symbolic(_) => None,
        });
        extents.fold(1_usize, usize::saturating_mul)
    };
    let mut names: Vec<&Dim> = dims
        .iter()
        .filter(|dim| matches!(dim, Dim::Symbolic(_)))
        .collect();
    for (at, dim) in shape.iter().enumerate() {
        if at != open && matches!(dim, Dim::Symbolic(_)) {
            let same = names.iter().position(|name| *name == dim)?;
            names.remove(same);
        }
    }
    let (before, after) = (fixed(dims), fixed(&shape));
    let whole = after > 0 && before % after == 0;
    shape[open] = match (&names[..], before.checked_div(after)) {
        ([], Some(extent)) if whole => Dim::Fixed(extent),
        ([name], Some(1)) if whole => (*name).clone(),
        _ => Dim::Symbolic(UNKNOWN.into()),
    };
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(text: &[&str]) -> Vec<Dim> {
        let dim = |text: &&str| {
            text.parse()
                .map_or_else(|_| Dim::Symbolic((*text).into()), Dim::Fixed)
        };
        text.iter().map(dim).collect()
    }

    #[test]
    fn reshaping_keeps_what_is_named_and_finds_what_is_left() {
        let x = dims(&["batch", "tokens", "384"]);
        assert_eq!(
            reshaped(&x, &[0, 0, 12, 32]),
            Some(dims(&["batch", "tokens", "12", "32"]))
        );
        assert_eq!(
            reshaped(&x, &[0, -1, 12, 32]),
            Some(dims(&["batch", "tokens", "12", "32"]))
        );
        assert_eq!(
            reshaped(&x, &[0, 0, -1, 32]),
            Some(dims(&["batch", "tokens", "12", "32"]))
        );
        assert_eq!(reshaped(&x, &[-1, 384]), Some(dims(&["?", "384"])));
        assert_eq!(reshaped(&x, &[0, 0, 0, 0]), None);
    }

    #[test]
    fn ones_give_way() {
        let sum = broadcast(
            &dims(&["batch", "1", "1", "tokens"]),
            &dims(&["12", "tokens", "1"]),
        );
        assert_eq!(sum, dims(&["batch", "12", "tokens", "tokens"]));
    }
}
