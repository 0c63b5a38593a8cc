//! Transpositions that meet become one, or none. Where what stands between two goes value by value, the first one moves behind it.

use isovec_engine::onnx::proto::NodeProto;
use isovec_model::onnx::builder::ints;

use super::evaluate::order;
use super::net::Net;
use crate::operators::{goes_alone, goes_in_pairs};

pub(super) fn run(net: &mut Net<'_>) -> usize {
    let mut changes = 0;
    for at in 0..net.nodes().len() {
        if net.operator(at) == "Transpose" {
            changes += usize::from(joined(net, at) || moved(net, at));
        } else if goes_in_pairs(net.operator(at)) {
            changes += usize::from(behind_both(net, at));
        }
    }
    changes
}

fn perm(net: &Net<'_>, at: usize) -> Option<Vec<usize>> {
    let perm = net.nodes()[at].ints("perm")?;
    order(Some(perm), perm.len())
}

fn transpose(of: &str, output: &str, perm: &[usize]) -> NodeProto {
    let perm: Vec<i64> = perm.iter().map(|&axis| axis as i64).collect();
    NodeProto {
        op_type: "Transpose".into(),
        name: format!("{output}.turned"),
        input: vec![of.to_owned()],
        output: vec![output.to_owned()],
        attribute: vec![ints("perm", &perm)],
        ..NodeProto::default()
    }
}

/// Joins a transposition with the one before it.
fn joined(net: &mut Net<'_>, at: usize) -> bool {
    let node = &net.nodes()[at];
    let Some(before) = net.made_by(&node.input[0], "Transpose") else {
        return false;
    };
    let (Some(first), Some(second)) = (perm(net, before), perm(net, at)) else {
        return false;
    };
    if first.len() != second.len() {
        return false;
    }
    let both: Vec<usize> = second.iter().map(|&axis| first[axis]).collect();
    let (of, output) = (net.nodes()[before].input[0].clone(), node.output[0].clone());
    if both.iter().enumerate().all(|(place, &axis)| place == axis) {
        return net.replace(&output, &of);
    }
    net.put(at, transpose(&of, &output, &both));
    true
}

/// Moves a transposition behind the only node that reads it, where that and those behind it go value by value until the next
/// transposition.
fn moved(net: &mut Net<'_>, at: usize) -> bool {
    let Some(order) = perm(net, at) else {
        return false;
    };
    let Some((reader, input)) = by_value(net, &net.nodes()[at].output[0]) else {
        return false;
    };
    let mut last = reader;
    loop {
        let output = &net.nodes()[last].output[0];
        match net.only_reader(output) {
            Some(next) if net.operator(next) == "Transpose" => break,
            _ => match by_value(net, output) {
                Some((next, _)) => last = next,
                None => return false,
            },
        }
    }
    let output = net.nodes()[reader].output[0].clone();
    let between = net.fresh(&output);
    let mut node = net.nodes()[reader].clone();
    node.input[input].clone_from(&net.nodes()[at].input[0]);
    node.output[0].clone_from(&between);
    net.put(at, node);
    net.put(reader, transpose(&between, &output, &order));
    true
}

/// The only reader of a value, which goes value by value, and where it reads it.
fn by_value(net: &Net<'_>, value: &str) -> Option<(usize, usize)> {
    let reader = net.only_reader(value)?;
    let node = &net.nodes()[reader];
    let input = node.input.iter().position(|input| input == value)?;
    let operator = net.operator(reader);
    let others = node
        .input
        .iter()
        .enumerate()
        .filter(|(place, name)| *place != input && !name.is_empty());
    // A number with more axes than the value would give it more.
    let mut others =
        others.map(|(_, name)| net.value(name).is_some_and(|value| value.shape.is_empty()));
    let known = goes_alone(operator) || goes_in_pairs(operator);
    (known && others.all(|scalar| scalar)).then_some((reader, input))
}

/// Turns a sum of two values that are turned alike, and not each of both.
fn behind_both(net: &mut Net<'_>, at: usize) -> bool {
    let [a, b] = net.nodes()[at].input.as_slice() else {
        return false;
    };
    let turned = |value: &str| {
        net.made_by(value, "Transpose")
            .filter(|_| net.only_reader(value) == Some(at))
    };
    let (Some(left), Some(right)) = (turned(a), turned(b)) else {
        return false;
    };
    let (Some(order), Some(other)) = (perm(net, left), perm(net, right)) else {
        return false;
    };
    // Values of fewer axes would be spread along others.
    if order != other {
        return false;
    }
    let output = net.nodes()[at].output[0].clone();
    let between = net.fresh(&output);
    let mut node = net.nodes()[at].clone();
    node.input = [left, right]
        .map(|place| net.nodes()[place].input[0].clone())
        .into();
    node.output[0].clone_from(&between);
    net.put(left.max(right), node);
    net.put(at, transpose(&between, &output, &order));
    true
}
