//! Removing what no longer leads to an output.

use std::collections::HashSet;

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::maybe_send::EngineFuture;
use isovec_engine::onnx::proto::{GraphProto, NodeProto};
use isovec_engine::weights::{Sink, WeightInfo, WeightSource, Weights};

/// Drops nodes that lead to no output, and the weights and constants that nothing reads.
pub fn prune(bundle: &mut ModelBundle) {
    let Some(graph) = bundle.graph.graph.as_mut() else {
        return;
    };
    let needed = needed_values(graph);
    graph
        .node
        .retain(|node| node.output.iter().any(|output| needed.contains(output)));
    graph
        .initializer
        .retain(|tensor| needed.contains(&tensor.name));
    graph.sparse_initializer.retain(|tensor| {
        tensor
            .values
            .as_ref()
            .is_some_and(|values| needed.contains(&values.name))
    });
    graph
        .value_info
        .retain(|value| needed.contains(&value.name));
    let keep: Vec<usize> = bundle
        .weights
        .weights()
        .iter()
        .enumerate()
        .filter(|(_, weight)| needed.contains(&weight.name))
        .map(|(index, _)| index)
        .collect();
    if keep.len() < bundle.weights.weights().len() {
        bundle.weights = std::sync::Arc::new(Selected::new(bundle.weights.clone(), keep));
    }
}

/// Names of all values from which an output is computed.
fn needed_values(graph: &GraphProto) -> HashSet<String> {
    let mut needed: HashSet<String> = graph
        .output
        .iter()
        .map(|output| output.name.clone())
        .collect();
    // ONNX nodes are in topological order, so one pass from the end sees every reader first.
    for node in graph.node.iter().rev() {
        if node.output.iter().any(|output| needed.contains(output)) {
            read_values(node, &mut needed);
        }
    }
    needed
}

/// What a node reads, the graphs in its attributes included: those may name outer values.
fn read_values(node: &NodeProto, into: &mut HashSet<String>) {
    into.extend(node.input.iter().filter(|name| !name.is_empty()).cloned());
    for attribute in &node.attribute {
        for graph in attribute.g.iter().chain(&attribute.graphs) {
            into.extend(graph.output.iter().map(|output| output.name.clone()));
            for inner in &graph.node {
                read_values(inner, into);
            }
        }
    }
}

/// Some of another source's weights.
#[derive(Debug)]
struct Selected {
    inner: Weights,
    indices: Vec<usize>,
    infos: Vec<WeightInfo>,
}

impl Selected {
    fn new(inner: Weights, indices: Vec<usize>) -> Self {
        let infos = indices
            .iter()
            .map(|&index| inner.weights()[index].clone())
            .collect();
        Self {
            inner,
            indices,
            infos,
        }
    }
}

impl WeightSource for Selected {
    fn weights(&self) -> &[WeightInfo] {
        &self.infos
    }

    fn read<'a>(&'a self, index: usize) -> EngineFuture<'a, Bytes> {
        self.inner.read(self.indices[index])
    }

    fn read_pieces<'a>(&'a self, index: usize, sink: &'a mut dyn Sink) -> EngineFuture<'a, ()> {
        self.inner.read_pieces(self.indices[index], sink)
    }

    fn turned<'a>(&'a self, index: usize) -> Option<EngineFuture<'a, Bytes>> {
        self.inner.turned(self.indices[index])
    }

    fn lent(&self, index: usize) -> Option<Bytes> {
        self.inner.lent(self.indices[index])
    }
}
