//! Decides which results are stored as f16, if the device supports it.
//!
//! These are the results that only products and attention read: queries, keys and values, the output of attention,
//! and the values between the two products of a layer. Kernels that are limited by memory read them once, compute
//! their sums in f32, and use weights that are rounded to eleven bits as well. The residual stream stays f32: it
//! would be rounded again in every layer, and in models that normalise before they compute it grows beyond the range
//! of f16. Values that norms, pooling and the caller read stay f32 too, and so do those before a product that only a normalisation reads:
//! it takes away how large they are, so nothing in training kept them small. Gemma's do not fit f16
//! (<https://ai.google.dev/gemma/docs/embeddinggemma/model_card>).

use std::collections::HashSet;

use isovec_encoder::program::{Binary, Linear, Node, NodeId, Op, Unary};

/// The nodes whose results are held as f16.
pub(super) fn halves(
    nodes: &[Node],
    written: &HashSet<NodeId>,
    outputs: &[NodeId],
) -> HashSet<NodeId> {
    let mut halves: HashSet<NodeId> = written
        .difference(&outputs.iter().copied().collect())
        .copied()
        .collect();
    for node in nodes {
        match &node.op {
            Op::Linear(linear) => {
                if let Some(residual) = linear.residual {
                    halves.remove(&residual);
                }
            }
            Op::Attention(_) => {}
            op => op.inputs().iter().for_each(|input| {
                halves.remove(input);
            }),
        }
        if let Some(unbounded) = before_a_norm(nodes, &node.op) {
            halves.remove(&unbounded);
        }
    }
    match hides(nodes, &halves) {
        true => HashSet::new(),
        false => halves,
    }
}

/// What a product reads, if an operator normalises the product's rows and adds nothing to them.
fn before_a_norm(nodes: &[Node], op: &Op) -> Option<NodeId> {
    let Op::Norm(norm) = op else { return None };
    let product = nodes.get(norm.x.0)?;
    match &product.op {
        Op::Linear(Linear {
            x, residual: None, ..
        }) if norm.residual.is_none() && norm.size == product.width => Some(*x),
        _ => None,
    }
}

/// Whether a graph makes numbers out of what is none. A result that is too large for an f16 is written as no number,
/// which has to reach the vector, or nobody would know.
fn hides(nodes: &[Node], halves: &HashSet<NodeId>) -> bool {
    let mut reached: HashSet<NodeId> = HashSet::new();
    for (at, node) in nodes.iter().enumerate() {
        let inputs = node.op.inputs();
        let is = |id: &NodeId| reached.contains(id) || halves.contains(id);
        if !inputs.iter().any(is) {
            continue;
        }
        if makes_numbers(&node.op) {
            return true;
        }
        reached.insert(NodeId(at));
    }
    false
}

/// Whether an operator's result may be a number where an operand is none.
fn makes_numbers(op: &Op) -> bool {
    match op {
        // Anything to the power of 0 is 1.
        Op::Map { f, .. } => match f {
            Unary::Power(exponent) => *exponent == 0.0,
            f => matches!(f, Unary::IsNan | Unary::Not | Unary::Sign),
        },
        Op::Zip { f, .. } => matches!(
            f,
            Binary::And
                | Binary::Or
                | Binary::Equal
                | Binary::Greater
                | Binary::GreaterOrEqual
                | Binary::Less
                | Binary::LessOrEqual
                | Binary::Power
        ),
        // The operand that decides, or the number of a row.
        Op::Select { .. } | Op::Gather { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use isovec_encoder::program::{Matrix, Norm, NormKind, Operand, Rows, Source};

    use super::*;

    fn linear(x: usize, residual: Option<usize>) -> Op {
        Op::Linear(Linear {
            x: NodeId(x),
            matrix: Matrix::Constant {
                values: [].into(),
                rows: 4,
            },
            bias: None,
            activation: None,
            residual: residual.map(NodeId),
        })
    }

    fn of(ops: Vec<Op>) -> Vec<usize> {
        let last = NodeId(ops.len() - 1);
        let nodes = ops.into_iter().map(|op| Node {
            op,
            rows: Rows::Tokens,
            width: 4,
        });
        let nodes: Vec<Node> = nodes.collect();
        let written = (0..nodes.len()).map(NodeId).collect();
        let halves = halves(&nodes, &written, &[last]);
        let mut halves: Vec<usize> = halves.into_iter().map(|id| id.0).collect();
        halves.sort_unstable();
        halves
    }

    #[test]
    fn what_is_added_to_stays_whole() {
        let gelu = |x| Op::Map {
            x: NodeId(x),
            f: Unary::Gelu,
        };
        // 0 is read by a product, and added by another; 1 by a product alone; 3 by something else.
        let ops = vec![
            Op::Position,
            linear(0, None),
            linear(1, Some(0)),
            linear(2, None),
            gelu(3),
            linear(4, None),
        ];
        assert_eq!(of(ops), [1, 2, 4]);
    }

    #[test]
    fn what_a_normalisation_makes_small_stays_whole() {
        let norm = |x, residual: Option<usize>, size| {
            Op::Norm(Norm {
                x: NodeId(x),
                residual: residual.map(NodeId),
                kind: NormKind::RootMeanSquare,
                size,
                epsilon: 1e-6,
                gamma: None,
                beta: None,
            })
        };
        let ops = |norm| vec![Op::Position, linear(0, None), linear(1, None), norm];
        assert_eq!(of(ops(norm(2, None, 4))), [0]);
        // Of each head, and of a sum, which the layers before keep small.
        assert_eq!(of(ops(norm(2, None, 2))), [0, 1]);
        assert_eq!(of(ops(norm(2, Some(0), 4))), [1]);
    }

    #[test]
    fn nothing_is_held_small_where_an_overflow_would_be_hidden() {
        let map = |f| Op::Map { x: NodeId(2), f };
        let operand = |source| Operand {
            source,
            offset: 0,
            strides: vec![1],
        };
        let zip = |f| Op::Zip {
            f,
            a: operand(Source::Node(NodeId(2))),
            b: operand(Source::Constant([0.0; 4].into())),
            extents: vec![4],
        };
        let ops = |last| vec![Op::Position, linear(0, None), linear(1, None), last];
        assert_eq!(of(ops(linear(2, None))), [0, 1, 2]);
        assert!(of(ops(map(Unary::Sign))).is_empty());
        // No number to the power of 0 is 1.
        assert!(of(ops(map(Unary::Power(0.0)))).is_empty());
        assert_eq!(of(ops(map(Unary::Power(2.0)))), [0, 1]);
        assert!(of(ops(zip(Binary::Power))).is_empty());
        assert_eq!(of(ops(zip(Binary::Mul))), [0, 1]);
    }
}
