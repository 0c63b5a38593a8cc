//! A newer operator set for all nodes (<https://github.com/onnx/onnx/blob/main/docs/Changelog.md>).

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::NodeProto;
use isovec_model::onnx::builder::int;

use super::net::{Net, inner};
use super::value::Value;
use crate::int8::shown;

/// The oldest operator set whose nodes are written anew.
const OLDEST: i64 = 11;

/// The newest one that is known.
const NEWEST: i64 = 20;

/// Operators that mean the same from the oldest to the newest set, whatever their attributes.
const SAME: [&str; 76] = [
    "Abs",
    "Add",
    "And",
    "ArgMax",
    "ArgMin",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Ceil",
    "Clip",
    "Concat",
    "Constant",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "Cos",
    "CumSum",
    "DepthToSpace",
    "Div",
    "Einsum",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Flatten",
    "Floor",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "MatMul",
    "Max",
    "MaxPool",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Neg",
    "NonZero",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Range",
    "Reciprocal",
    "Relu",
    "Reshape",
    "Round",
    "ScatterND",
    "Shape",
    "Sigmoid",
    "Sign",
    "Sin",
    "Slice",
    "Softplus",
    "Sqrt",
    "Sub",
    "Sum",
    "Tanh",
    "Tile",
    "Transpose",
    "Where",
];

/// Operators whose axes were an attribute before this set, and are an input since.
fn axes_since(operator: &str) -> Option<i64> {
    match operator {
        "Squeeze" | "Unsqueeze" | "ReduceSum" => Some(13),
        "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1" | "ReduceL2"
        | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceSumSquare" => Some(18),
        _ => None,
    }
}

/// Writes all nodes in this operator set, or in the newer one that they are in. Where one of them is not known to mean the same there,
/// nothing is changed, and the answer says which.
pub(super) fn raise(net: &mut Net<'_>, to: i64) -> Result<(), String> {
    let from = net.opset;
    if from >= to {
        return Ok(());
    }
    let set = format!("operator set {to} is needed, the model has {from}");
    if from < OLDEST || to > NEWEST {
        return Err(set);
    }
    let strange = net
        .nodes()
        .iter()
        .find(|node| !means_the_same(net, node, from, to));
    if let Some(node) = strange {
        let (name, operator) = (shown(node), &node.op_type);
        return Err(format!(
            "{set}, and node {name} ({operator}) may mean something else there"
        ));
    }
    for at in 0..net.nodes().len() {
        let crossed = |since: i64| from < since && since <= to;
        let operator = net.nodes()[at].op_type.clone();
        if !default_domain(&net.nodes()[at].domain).is_empty() {
            continue;
        }
        if axes_since(&operator).is_some_and(crossed) {
            to_input(net, at, "axes");
        } else if operator == "Split" {
            if crossed(13) {
                to_input(net, at, "split");
            }
            let mut node = net.nodes()[at].clone();
            if crossed(18) && node.input.len() < 2 {
                let parts = node.output.len() as i64;
                node.attribute.push(int("num_outputs", parts));
                net.put(at, node);
            }
        }
    }
    net.opset = to;
    Ok(())
}

fn means_the_same(net: &Net<'_>, node: &NodeProto, from: i64, to: i64) -> bool {
    if !default_domain(&node.domain).is_empty() {
        return true;
    }
    if inner(&node.attribute).next().is_some() {
        return false;
    }
    let operator = node.op_type.as_str();
    match operator {
        // Before set 13 all axes from this one on were one.
        "Softmax" | "LogSoftmax" if from < 13 && to >= 13 => match node.int("axis") {
            Some(-1) => true,
            axis => net
                .rank(&node.input[0])
                .is_some_and(|rank| axis == Some(rank as i64 - 1)),
        },
        "Softmax" | "LogSoftmax" | "Split" => true,
        "Dropout" => from >= 12,
        // The statistics of a training had outputs of their own.
        "BatchNormalization" => node.output.len() == 1,
        "Resize" => node.text("coordinate_transformation_mode") != Some("tf_half_pixel_for_nn"),
        "Pad" => from >= 11,
        _ => axes_since(operator).is_some() || SAME.contains(&operator),
    }
}

/// Gives a node by a constant input what it has in an attribute.
fn to_input(net: &mut Net<'_>, at: usize, name: &str) {
    let mut node = net.nodes()[at].clone();
    let Some(numbers) = node.ints(name).map(<[i64]>::to_vec) else {
        return;
    };
    node.attribute.retain(|attribute| attribute.name != name);
    let hint = format!("{}.{name}", node.output[0]);
    let held = net.hold(&hint, Net::held(&Value::row(numbers)));
    node.input.truncate(1);
    node.input.push(held);
    net.put(at, node);
}
