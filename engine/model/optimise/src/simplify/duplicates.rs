//! Computes once what several nodes compute from the same inputs.

use std::collections::HashMap;

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{AttributeProto, NodeProto};
use prost::Message;

use super::net::{Net, inner};

/// Operators that give something else each time.
const RANDOM: [&str; 7] = [
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// An operator, its inputs, and its attributes.
type Computed = (String, Vec<String>, Vec<Vec<u8>>);

pub(super) fn run(net: &mut Net<'_>) -> usize {
    let mut changes = 0;
    let mut first: HashMap<Computed, String> = HashMap::new();
    for at in 0..net.nodes().len() {
        let node = &net.nodes()[at];
        if !comparable(node) {
            continue;
        }
        let output = node.output[0].clone();
        let key = (node.op_type.clone(), node.input.clone(), attributes(node));
        match first.get(&key).cloned() {
            None => {
                first.insert(key, output);
            }
            // Of two values that something else reads both have to stay.
            Some(other) => {
                changes += usize::from(!net.is_pinned(&output) && net.replace(&output, &other))
            }
        }
    }
    changes
}

fn comparable(node: &NodeProto) -> bool {
    default_domain(&node.domain).is_empty()
        && node.output.len() == 1
        && !node.output[0].is_empty()
        && !RANDOM.contains(&node.op_type.as_str())
        && inner(&node.attribute).next().is_none()
}

/// The attributes, in one order.
fn attributes(node: &NodeProto) -> Vec<Vec<u8>> {
    let mut attributes: Vec<Vec<u8>> = node
        .attribute
        .iter()
        .map(AttributeProto::encode_to_vec)
        .collect();
    attributes.sort_unstable();
    attributes
}
