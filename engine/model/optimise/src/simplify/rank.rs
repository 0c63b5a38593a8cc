//! How many axes a value has, where the graph says so.

use super::net::Net;
use crate::operators::{goes_alone, goes_in_pairs};

/// Nodes that are looked through at most.
const FAR: usize = 64;

/// Operators whose output has the axes of their first input, beside those that go value by value.
const LIKE_FIRST: [&str; 17] = [
    "AveragePool",
    "BatchNormalization",
    "Concat",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "InstanceNormalization",
    "LayerNormalization",
    "LogSoftmax",
    "MaxPool",
    "Pad",
    "Resize",
    "Slice",
    "Softmax",
    "Tile",
];

impl Net<'_> {
    /// The number of a value's axes.
    pub(super) fn rank(&self, value: &str) -> Option<usize> {
        self.rank_within(value, FAR)
    }

    fn rank_within(&self, value: &str, left: usize) -> Option<usize> {
        if let Some(held) = self.constant(value) {
            return Some(held.shape().len());
        }
        if let Some(rank) = self.input_rank(value) {
            return Some(rank);
        }
        let left = left.checked_sub(1)?;
        let at = self.maker(value)?;
        let node = &self.nodes()[at];
        let of = |input: usize| self.rank_within(node.input.get(input)?, left);
        let axes = |input: usize| Some(self.asked(node, "axes", input)?.len());
        match self.operator(at) {
            "Transpose" => Some(node.ints("perm")?.len()),
            "Reshape" => Some(self.value(node.input.get(1)?)?.numbers.len()),
            "Unsqueeze" => Some(of(0)? + axes(1)?),
            "Squeeze" => of(0)?.checked_sub(axes(1)?),
            "Pow" => Some(of(0)?.max(of(1)?)),
            operator if goes_in_pairs(operator) => Some(of(0)?.max(of(1)?)),
            // One axis is no matrix.
            "MatMul" => Some(of(0)?.max(of(1)?)).filter(|&rank| rank > 1),
            operator if goes_alone(operator) || LIKE_FIRST.contains(&operator) => of(0),
            operator
                if operator.starts_with("Reduce") && node.int("keepdims").unwrap_or(1) != 0 =>
            {
                of(0)
            }
            _ => None,
        }
    }
}
