//! Which values between layers are in 8 bits.

use std::collections::{BTreeMap, BTreeSet};

use isovec_engine::onnx::default_domain;
use isovec_engine::onnx::proto::{GraphProto, NodeProto};

use super::layers::{Chain, Layer};
use super::observed::Ranges;
use crate::error::Result;

/// Operators that ONNX Runtime computes on whole numbers where those come in and whole numbers go out.
const COMPUTED: [&str; 7] = [
    "Add",
    "AveragePool",
    "Concat",
    "GlobalAveragePool",
    "LeakyRelu",
    "Mul",
    "Sigmoid",
];

/// Operators that only move values or choose some of them: what goes out has the scale of what comes in.
const MOVED: [&str; 6] = [
    "Flatten",
    "MaxPool",
    "Reshape",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];

/// What is in 8 bits.
pub(super) struct Regions {
    /// The scale and the zero point of each value.
    pub(super) values: BTreeMap<String, (f32, u8)>,
    /// Those of them that a node in 8 bits makes: nodes in f32 read what becomes of them, because they are no more in f32.
    pub(super) made: BTreeSet<String>,
    /// The nodes between layers, by their index.
    pub(super) between: BTreeSet<usize>,
}

/// The values that nodes between any of these layers make.
pub(super) fn values_between<'g>(
    layers: &[&Layer],
    graph: &'g GraphProto,
    chain: &Chain<'g>,
) -> impl Iterator<Item = &'g str> {
    let nodes = between(layers, graph, chain).into_iter();
    nodes.map(|at| made(&graph.node[at], chain))
}

/// The nodes between these layers, by their index.
///
/// Such a node reads nothing but what is in 8 bits in any case, and a layer reads what it makes, or another such node. So a sum that
/// leads to an output alone is computed in f32, and what computes with extents is none of them. Fewer layers have no others between
/// them.
fn between(layers: &[&Layer], graph: &GraphProto, chain: &Chain<'_>) -> BTreeSet<usize> {
    let read_by_layers: BTreeSet<&str> = layers.iter().map(|layer| layer.input.as_str()).collect();
    let by_layers = layers.iter().map(|layer| chain.activated(layer.made()));
    let by_layers: BTreeSet<&str> = by_layers.collect();
    let candidates = graph.node.iter().enumerate();
    let mut between: BTreeSet<usize> = candidates
        .filter(|(_, node)| is_between(node))
        .map(|(at, _)| at)
        .collect();
    loop {
        let nodes = || between.iter().map(|&at| &graph.node[at]);
        let by_nodes: BTreeSet<&str> = nodes().map(|node| made(node, chain)).collect();
        let read_by_nodes: BTreeSet<&str> = nodes().flat_map(read).map(String::as_str).collect();
        let small = |name: &str| {
            by_layers.contains(name) || by_nodes.contains(name) || read_by_layers.contains(name)
        };
        let stays = |at: &usize| {
            let node = &graph.node[*at];
            let wanted = made(node, chain);
            let wanted = read_by_layers.contains(wanted) || read_by_nodes.contains(wanted);
            wanted && read(node).iter().all(|name| small(name))
        };
        let left: BTreeSet<usize> = between.iter().copied().filter(stays).collect();
        if left.len() == between.len() {
            return between;
        }
        between = left;
    }
}

/// Whether a node can stand between two layers and be in 8 bits.
fn is_between(node: &NodeProto) -> bool {
    let operator = node.op_type.as_str();
    default_domain(&node.domain).is_empty()
        && node.output.len() == 1
        && (COMPUTED.contains(&operator) || MOVED.contains(&operator))
}

fn moves(node: &NodeProto) -> bool {
    MOVED.contains(&node.op_type.as_str())
}

/// The values that a node reads; the others are constants that say how.
fn read(node: &NodeProto) -> &[String] {
    match moves(node) {
        true => &node.input[..1.min(node.input.len())],
        false => &node.input,
    }
}

/// The value that a node makes, behind an activation that alone reads it.
fn made<'v>(node: &'v NodeProto, chain: &Chain<'v>) -> &'v str {
    match moves(node) {
        true => &node.output[0],
        false => chain.activated(&node.output[0]),
    }
}

impl Regions {
    /// Those around these layers.
    pub(super) fn around(
        layers: &[&Layer],
        graph: &GraphProto,
        chain: &Chain<'_>,
        ranges: &Ranges,
    ) -> Result<Self> {
        let between = between(layers, graph, chain);
        let read_by_layers = layers.iter().map(|layer| layer.input.as_str());
        let by_layers = layers.iter().map(|layer| chain.activated(layer.made()));
        // ONNX Runtime needs the rounding behind a convolution, and can do without it behind a product.
        let convolutions = layers.iter().filter(|layer| layer.kernel.shape.len() > 2);
        let always: BTreeSet<&str> = convolutions
            .map(|layer| chain.activated(layer.made()))
            .collect();
        let nodes = || between.iter().map(|&at| &graph.node[at]);
        let read_by_nodes = nodes().flat_map(read).map(String::as_str);
        let by_nodes = nodes().map(|node| made(node, chain));
        let wanted: BTreeSet<&str> = read_by_layers.chain(read_by_nodes).collect();
        let by_layers = by_layers.filter(|name| always.contains(name) || wanted.contains(name));
        let made_small: BTreeSet<&str> = by_layers.chain(by_nodes).collect();
        let mut values = BTreeMap::new();
        let copies: BTreeSet<&str> = nodes()
            .filter(|node| moves(node))
            .map(|node| made(node, chain))
            .collect();
        for &name in wanted
            .union(&made_small)
            .filter(|name| !copies.contains(**name))
        {
            values.insert(name.to_owned(), ranges.range(name)?.to_u8());
        }
        // In the order of the graph, so that what a node reads has its scale.
        for node in nodes().filter(|node| moves(node)) {
            if let Some(&own) = values.get(&node.input[0]) {
                values.insert(made(node, chain).to_owned(), own);
            }
        }
        Ok(Self {
            made: made_small.into_iter().map(str::to_owned).collect(),
            values,
            between,
        })
    }
}
