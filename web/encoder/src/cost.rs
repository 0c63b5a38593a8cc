//! The cost of an operator, by the same rule for profiles, for slices of a run and for the view of a program.

use crate::node::{Node, Op};

/// Multiply-adds of a row of a node's result, in texts of at most `longest` tokens. Those of products
/// (`[m, k] · [k, n]` has m · k · n) and of attention (a query meets every key that it sees, once for its score
/// and once for the value) are what is computed; the others stand for what takes about as long. A number that
/// is too large for the type is its largest: a program may be shown for texts of any length.
pub(crate) fn of_row(node: &Node, inner: usize, longest: usize) -> u64 {
    let (width, longest) = (node.width as u64, longest as u64);
    match &node.op {
        Op::Linear(_) => width.saturating_mul(inner as u64),
        Op::Attention(attention) => {
            let ways = if attention.causal { 1 } else { 2 };
            let seen = attention.reach.map_or(longest, |reach| {
                let all = (reach as u64).saturating_mul(ways);
                longest.min(all.saturating_add(1))
            });
            // The first token sees itself alone, the last one all.
            let seen = match (attention.causal, attention.reach) {
                (true, None) => longest.div_ceil(2),
                _ => seen,
            };
            // Terms by distance are scores more.
            let parts = 2 + attention.sides().count() as u64;
            width.saturating_mul(parts).saturating_mul(seen)
        }
        Op::Pool { .. } | Op::WeightedSum { .. } => width.saturating_mul(longest),
        Op::Map { .. } | Op::Norm(_) | Op::Softmax { .. } => width.saturating_mul(8),
        _ => width.saturating_mul(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Attention, NodeId, Rows};
    use crate::value::HeadColumns;

    #[test]
    fn attention_that_reaches_any_distance_sees_the_whole_text() {
        let columns = HeadColumns {
            node: NodeId(0),
            offset: 0,
            stride: 4,
        };
        let node = |reach, causal| Node {
            op: Op::Attention(Box::new(Attention {
                query: columns,
                key: columns,
                value: columns,
                heads: 2,
                size: 4,
                scale: 1.0,
                bias: None,
                relative: None,
                reach,
                causal,
            })),
            rows: Rows::Tokens,
            width: 8,
        };
        assert_eq!(of_row(&node(Some(usize::MAX), false), 4, 100), 2 * 8 * 100);
        assert_eq!(of_row(&node(Some(3), false), 4, 100), 2 * 8 * 7);
        assert_eq!(of_row(&node(Some(3), true), 4, 100), 2 * 8 * 4);
        assert_eq!(of_row(&node(None, true), 4, 100), 2 * 8 * 50);
        assert_eq!(of_row(&node(None, false), 4, 100), 2 * 8 * 100);
    }
}
