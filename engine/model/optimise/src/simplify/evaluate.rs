//! What operators give of constants: those that shapes are computed with, and arithmetic that IEEE 754 rounds in one way
//! (<https://onnx.ai/onnx/operators/>).

mod arithmetic;
mod places;

use isovec_engine::onnx::proto::NodeProto;

use self::arithmetic::{binary, cast, select, unary};
use self::places::{
    concat, expand, filled, gather, range, reshape, slice, squeeze, transpose, unsqueeze,
};
use super::value::{Numbers, Value};

pub(super) use self::places::{order, reshaped, unsqueezed};

/// The output of a node whose inputs are these; none for other operators, and for inputs that an engine has to refuse.
pub(super) fn evaluate(node: &NodeProto, inputs: &[Option<Value>]) -> Option<Value> {
    let input = |at: usize| inputs.get(at).and_then(Option::as_ref);
    let first = || input(0).cloned();
    match node.op_type.as_str() {
        "Identity" => first(),
        "Shape" => shape_of(node, input(0)?),
        "Size" => Some(Value {
            shape: Vec::new(),
            numbers: Numbers::I64(vec![input(0)?.numbers.len() as i64]),
        }),
        "Cast" => cast(input(0)?, node.int("to")?),
        "Reshape" => reshape(node, input(0)?, input(1)?),
        "Unsqueeze" => unsqueeze(input(0)?, &axes(node, input(1))?),
        "Squeeze" => squeeze(input(0)?, axes(node, input(1))),
        "Transpose" => transpose(input(0)?, node.ints("perm")),
        "Concat" => concat(node, inputs),
        "Gather" => gather(node, input(0)?, input(1)?),
        "Slice" => slice(input(0)?, inputs),
        "Expand" => expand(input(0)?, &input(1)?.ints()?),
        "ConstantOfShape" => filled(node, &input(0)?.ints()?),
        "Range" => range(input(0)?, input(1)?, input(2)?),
        "Neg" | "Sqrt" | "Not" | "Floor" | "Ceil" => unary(&node.op_type, input(0)?),
        "Where" => select(input(0)?, input(1)?, input(2)?),
        "Add" | "Sub" | "Mul" | "Div" | "Equal" | "Less" | "Greater" | "And" | "Or" => {
            binary(&node.op_type, input(0)?, input(1)?)
        }
        _ => None,
    }
}

fn axes(node: &NodeProto, given: Option<&Value>) -> Option<Vec<i64>> {
    match node.ints("axes") {
        Some(axes) => Some(axes.to_vec()),
        None => given?.ints(),
    }
}

fn shape_of(node: &NodeProto, value: &Value) -> Option<Value> {
    let rank = value.shape.len() as i64;
    let bound = |name: &str, unset: i64| {
        let given = node.int(name).unwrap_or(unset);
        let counted = if given < 0 { given + rank } else { given };
        counted.clamp(0, rank) as usize
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    let extents = value.shape.get(start..end.max(start))?;
    Some(Value::row(
        extents.iter().map(|&extent| extent as i64).collect(),
    ))
}
