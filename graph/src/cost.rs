//! What an operator costs, counted the same for profiles, for slices of a run and for a plan that is looked at.

use crate::node::{Node, Op};

/// Multiply-adds of a row of a node's result, in texts of at most `longest` tokens. Those of products
/// (`[m, k] · [k, n]` has m · k · n) and of attention (a query meets every key that it sees, once for its score
/// and once for the value) are what is computed; the others stand for what takes about as long.
pub(crate) fn of_row(node: &Node, inner: usize, longest: usize) -> u64 {
    let width = node.width as u64;
    match &node.op {
        Op::Linear(_) => width * inner as u64,
        Op::Attention(attention) => {
            let seen = attention
                .reach
                .map_or(longest, |reach| longest.min(2 * reach + 1));
            2 * width * seen as u64
        }
        Op::Pool { .. } | Op::WeightedSum { .. } => width * longest as u64,
        Op::Map { .. } | Op::Norm(_) | Op::Softmax { .. } => 8 * width,
        _ => 2 * width,
    }
}
