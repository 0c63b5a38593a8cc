//! Facts about a program's nodes that are known without running it, for tools that show a model.

use std::collections::HashSet;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::tensor::DType;

use crate::cost;
use crate::node::{Floats, Matrix, Op, Operand, Source, Table};
use crate::program::Program;

/// The numbers of a model that a node reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeWeights {
    /// The large tensor among them, by the name that it has in the graph.
    pub name: Option<String>,
    /// The number of parameters. Weights that several nodes read are counted at the first of them.
    pub parameters: u64,
    /// Their bytes as the model stores them; constants that were made while the graph was read are f32.
    pub bytes: u64,
}

impl Program {
    /// Columns of a node's input where that says more of it: `k` of a product, or the size of a head;
    /// else 0.
    pub fn inner(&self, node: usize) -> usize {
        match &self.nodes[node].op {
            Op::Linear(linear) => self.nodes[linear.x.0].width,
            Op::Attention(attention) => attention.size,
            _ => 0,
        }
    }

    /// Multiply-adds of a row of a node's result, in texts of at most `longest` tokens: the same count as in a
    /// profile of the portable engine. Counts of products and attention are exact; others are chosen so that equal
    /// counts take about equal time.
    pub fn multiply_adds(&self, node: usize, longest: usize) -> u64 {
        cost::of_row(&self.nodes[node], self.inner(node), longest)
    }

    /// The numbers of the model that each node reads, by node.
    pub fn weights_by_node(&self, bundle: &ModelBundle) -> Vec<NodeWeights> {
        let mut seen = Seen::default();
        let nodes = self.nodes.iter().enumerate();
        nodes
            .map(|(at, node)| {
                let mut weights = NodeWeights::default();
                if let (Op::Linear(linear), Some(place)) = (&node.op, self.places[at]) {
                    let (k, n) = (self.inner(at) as u64, node.width as u64);
                    if let Matrix::Weight(weight) = &linear.matrix {
                        let info = &bundle.weights.weights()[weight.index];
                        weights.name = Some(info.name.clone());
                        let scales = weight.scale.as_ref().map_or(0, |_| n);
                        let bytes = k * n * info.dtype.size() as u64 + 4 * scales;
                        seen.large((false, place), k * n, bytes, &mut weights);
                    } else {
                        seen.large((false, place), k * n, 4 * k * n, &mut weights);
                    }
                }
                if let (Op::Gather { table, .. }, Some(place)) = (&node.op, self.places[at]) {
                    if let Table::Weight(weight) = table {
                        let info = &bundle.weights.weights()[weight.index];
                        weights.name = Some(info.name.clone());
                    }
                    let (dtype, rows, columns) = self.table(bundle, place);
                    let numbers = (rows * columns) as u64;
                    let scales = match dtype {
                        DType::I8 => 4 * rows as u64,
                        _ => 0,
                    };
                    let bytes = numbers * dtype.size() as u64 + scales;
                    seen.large((true, place), numbers, bytes, &mut weights);
                }
                if let Op::Attention(attention) = &node.op {
                    for side in attention.sides() {
                        let (dtype, rows, columns) = self.table(bundle, side.place);
                        let numbers = (rows * columns) as u64;
                        let bytes = numbers * dtype.size() as u64;
                        seen.large((true, side.place), numbers, bytes, &mut weights);
                    }
                }
                for floats in constants(&node.op) {
                    seen.small(floats, &mut weights);
                }
                weights
            })
            .collect()
    }
}

/// What was counted already.
#[derive(Default)]
struct Seen {
    /// By whether it is a table, and its place.
    large: HashSet<(bool, usize)>,
    small: HashSet<*const f32>,
}

impl Seen {
    fn large(&mut self, which: (bool, usize), numbers: u64, bytes: u64, to: &mut NodeWeights) {
        if self.large.insert(which) {
            to.parameters += numbers;
            to.bytes += bytes;
        }
    }

    fn small(&mut self, floats: &Floats, to: &mut NodeWeights) {
        if self.small.insert(floats.as_ptr()) {
            to.parameters += floats.len() as u64;
            to.bytes += size_of_val(&floats[..]) as u64;
        }
    }
}

/// The constants of an operator that are no matrix and no table.
fn constants(op: &Op) -> Vec<&Floats> {
    match op {
        Op::Linear(linear) => linear.bias.iter().collect(),
        Op::Norm(norm) => norm.gamma.iter().chain(&norm.beta).collect(),
        Op::Attention(attention) => attention.bias.iter().collect(),
        Op::Zip { a, b, .. } => [a, b].into_iter().filter_map(constant).collect(),
        Op::Select { c, a, b, .. } => [c, a, b].into_iter().filter_map(constant).collect(),
        Op::Copy { a, .. } => constant(a).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn constant(operand: &Operand) -> Option<&Floats> {
    match &operand.source {
        Source::Constant(floats) => Some(floats),
        Source::Node(_) => None,
    }
}
