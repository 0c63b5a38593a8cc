//! Takes out what gives what it is given.

use isovec_engine::onnx::proto::DataType;

use super::evaluate::order;
use super::net::Net;
use super::value::Numbers;

pub(super) fn run(net: &mut Net<'_>) -> usize {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        if let Some(given) = same(net, at) {
            let output = net.nodes()[at].output[0].clone();
            changes += usize::from(net.replace(&output, &given));
        } else if let Some(before) = joined(net, at) {
            net.reads(at, 0, &before);
            changes += 1;
        }
    }
    changes
}

/// The input that a node gives as it is.
fn same(net: &Net<'_>, at: usize) -> Option<String> {
    let node = &net.nodes()[at];
    let input = |at: usize| node.input.get(at).filter(|name| !name.is_empty());
    // The mask of a `Dropout` is a second output.
    let dropout =
        node.op_type == "Dropout" && isovec_engine::onnx::default_domain(&node.domain).is_empty();
    if dropout {
        let mask = node.output.get(1).is_some_and(|mask| {
            !mask.is_empty() && (net.is_pinned(mask) || !net.readers(mask).is_empty())
        });
        let trains = input(2).is_some_and(|mode| {
            let known = net.value(mode).map(|value| value.numbers);
            known != Some(Numbers::Bool(vec![false]))
        });
        return (!mask && !trains).then(|| input(0).cloned()).flatten();
    }
    match net.operator(at) {
        "Identity" => input(0).cloned(),
        "Concat" | "Max" | "Min" | "Sum" | "Mean" if node.input.len() == 1 => input(0).cloned(),
        "Transpose" => {
            let perm = node.ints("perm")?;
            let kept = order(Some(perm), perm.len())?.into_iter().enumerate();
            kept.into_iter()
                .all(|(place, axis)| place == axis)
                .then(|| input(0).cloned())?
        }
        "Cast" => (element(net, input(0)?)? == node.int("to")?).then(|| input(0).cloned())?,
        // A scalar spreads nothing. A zero that is added could change the sign of one.
        "Mul" => match (scalar(net, input(0)?), scalar(net, input(1)?)) {
            (_, Some(1.0)) => input(0).cloned(),
            (Some(1.0), _) => input(1).cloned(),
            _ => None,
        },
        "Div" if scalar(net, input(1)?) == Some(1.0) => input(0).cloned(),
        "Sub" if scalar(net, input(1)?).map(f32::to_bits) == Some(0) => input(0).cloned(),
        "Squeeze" => {
            let before = &net.nodes()[net.made_by(input(0)?, "Unsqueeze")?];
            let both = (net.asked(node, "axes", 1)?, net.asked(before, "axes", 1)?);
            (both.0 == both.1).then(|| before.input[0].clone())
        }
        "Unsqueeze" => {
            let before = &net.nodes()[net.made_by(input(0)?, "Squeeze")?];
            let both = (net.asked(node, "axes", 1)?, net.asked(before, "axes", 1)?);
            (both.0 == both.1).then(|| before.input[0].clone())
        }
        _ => None,
    }
}

/// For a node that makes no use of what the node before it did, the input of that one.
fn joined(net: &Net<'_>, at: usize) -> Option<String> {
    let node = &net.nodes()[at];
    if net.operator(at) != "Reshape" || node.int("allowzero").unwrap_or(0) != 0 {
        return None;
    }
    // A zero would take the extent of the value before.
    let asked = net.value(node.input.get(1)?)?.ints()?;
    let reads = ["Reshape", "Squeeze", "Unsqueeze", "Flatten"];
    let before = net
        .maker(&node.input[0])
        .filter(|&at| reads.contains(&net.operator(at)))?;
    (!asked.contains(&0)).then(|| net.nodes()[before].input[0].clone())
}

/// The only number of a constant without extents.
fn scalar(net: &Net<'_>, name: &str) -> Option<f32> {
    net.value(name)
        .filter(|value| value.shape.is_empty())?
        .float()
}

/// The element type of a value, where it is known.
fn element(net: &Net<'_>, name: &str) -> Option<i64> {
    if let Some(element) = net.input_type(name) {
        return Some(element.into());
    }
    let at = net.maker(name)?;
    match net.operator(at) {
        "Cast" => net.nodes()[at].int("to"),
        "Shape" | "Size" => Some(DataType::Int64 as i64),
        _ => None,
    }
}
