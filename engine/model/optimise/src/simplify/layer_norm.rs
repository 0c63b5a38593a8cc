//! A layer normalisation that is spread over operators: `(x - mean) / √(variance + ε) · scale + shift`
//! (<https://onnx.ai/onnx/operators/onnx__LayerNormalization.html>).

use isovec_engine::onnx::proto::NodeProto;
use isovec_model::onnx::builder::{float, int};

use super::net::Net;
use super::opset::raise;

/// The operator set that has it.
const SET: i64 = 17;

pub(super) fn run(net: &mut Net<'_>, reason: &mut String) -> usize {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        let Some(norm) = found(net, at) else {
            continue;
        };
        if let Err(why) = raise(net, SET) {
            *reason = why;
            return changes;
        }
        let old = &net.nodes()[at];
        let node = NodeProto {
            op_type: "LayerNormalization".into(),
            name: old.name.clone(),
            input: vec![norm.of, norm.scale, norm.shift],
            output: old.output.clone(),
            attribute: vec![int("axis", -1), float("epsilon", norm.epsilon)],
            ..NodeProto::default()
        };
        net.put(at, node);
        changes += 1;
    }
    changes
}

struct Norm {
    of: String,
    scale: String,
    shift: String,
    epsilon: f32,
}

/// The normalisation that ends with this addition.
fn found(net: &Net<'_>, at: usize) -> Option<Norm> {
    let (scaled, shift) = with_row(net, at, "Add")?;
    let (divided, scale) = with_row(net, net.maker(&scaled)?, "Mul")?;
    net.only_reader(&scaled)?;
    net.only_reader(&divided)?;
    let node = &net.nodes()[net.made_by(&divided, "Div")?];
    let centred = &node.input[0];
    let root = &net.nodes()[net.made_by(&node.input[1], "Sqrt")?];
    let (variance, epsilon) = net.with_float(net.maker(&root.input[0])?, "Add")?;
    let squared = mean_of(net, &variance)?;
    let square = net.maker(&squared)?;
    let whose = match net.operator(square) {
        "Pow" if net.float(&net.nodes()[square].input[1]) == Some(2.0) => {
            net.nodes()[square].input[0].clone()
        }
        "Mul" if net.nodes()[square].input[0] == net.nodes()[square].input[1] => {
            net.nodes()[square].input[0].clone()
        }
        _ => return None,
    };
    let (of, mean) = difference(net, centred)?;
    let again = difference(net, &whose)?;
    let alike = whose == *centred || (again.0 == of && mean_of(net, &again.1)? == of);
    let width = net.constant(&scale)?.shape();
    (alike && mean_of(net, &mean)? == of && net.constant(&shift)?.shape() == width).then_some(
        Norm {
            of,
            scale,
            shift,
            epsilon,
        },
    )
}

/// The other input of this operator, whose one is a constant row of f32s.
fn with_row(net: &Net<'_>, at: usize, operator: &str) -> Option<(String, String)> {
    if net.operator(at) != operator {
        return None;
    }
    let [a, b] = net.nodes()[at].input.as_slice() else {
        return None;
    };
    let row = |name: &str| {
        net.constant(name)
            .is_some_and(|held| held.is_f32() && held.shape().len() == 1)
    };
    match (row(a), row(b)) {
        (false, true) => Some((a.clone(), b.clone())),
        (true, false) => Some((b.clone(), a.clone())),
        _ => None,
    }
}

/// Both sides of a difference.
fn difference(net: &Net<'_>, value: &str) -> Option<(String, String)> {
    let node = &net.nodes()[net.made_by(value, "Sub")?];
    Some((node.input[0].clone(), node.input[1].clone()))
}

/// The value whose mean over the last axis this is.
fn mean_of(net: &Net<'_>, value: &str) -> Option<String> {
    let node = &net.nodes()[net.made_by(value, "ReduceMean")?];
    let [axis] = net.asked(node, "axes", 1)?[..] else {
        return None;
    };
    let last = axis == -1
        || net
            .rank(&node.input[0])
            .is_some_and(|rank| axis == rank as i64 - 1);
    (last && node.int("keepdims").unwrap_or(1) != 0).then(|| node.input[0].clone())
}
