//! Rows that count for nothing: a product whose result is only multiplied with a number of its row is not computed for rows whose
//! number is 0. A model of experts gives most of a token's experts the weight 0. What such a row would be, were it computed, does not
//! matter, even where it would be no number.

use crate::lower::Output;
use crate::node::{Binary, Node, NodeId, Op, Operand, Rows, Source, readers};

/// The numbers that rows of a product are multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gate {
    /// The node that has them.
    pub(crate) node: NodeId,
    /// Their column in it.
    pub(crate) column: usize,
    /// Whether rows that are not computed are 0. Else nothing reads them.
    pub(crate) zeroes: bool,
}

/// The gate of each node that has one.
pub(crate) fn gates(nodes: &[Node], outputs: &[Output]) -> Vec<Option<Gate>> {
    let readers = readers(nodes, outputs.iter().map(|output| output.node));
    let mut gates = vec![None; nodes.len()];
    for node in nodes {
        let Some((product, mut gate)) = gated(nodes, node) else {
            continue;
        };
        let mut at = product;
        // The numbers are there before the product, which nothing else reads.
        while readers[at.0] == 1 && gate.node < at && nodes[at.0].rows == Rows::Tokens {
            at = match &nodes[at.0].op {
                Op::Linear(linear) if linear.residual.is_none() => {
                    gates[at.0] = Some(gate);
                    gate.zeroes = false;
                    linear.x
                }
                // Of rows that the product after it does not read.
                Op::Map { x, .. } if !gate.zeroes => *x,
                _ => break,
            };
        }
    }
    gates
}

/// What a node multiplies with a number of its row, and that number.
fn gated(nodes: &[Node], node: &Node) -> Option<(NodeId, Gate)> {
    let Op::Zip {
        f: Binary::Mul,
        a,
        b,
        extents,
    } = &node.op
    else {
        return None;
    };
    let of_rows = |operand: &Operand| match operand.source {
        Source::Node(own) if nodes[own.0].rows == node.rows => Some(own),
        _ => None,
    };
    let own = crate::constant::strides(extents);
    let whole = |operand: &Operand| {
        let fits = operand.offset == 0 && operand.strides == own;
        of_rows(operand).filter(|NodeId(x)| fits && nodes[*x].width == node.width)
    };
    let number = |operand: &Operand| {
        let is_one = operand.strides.iter().all(|&stride| stride == 0);
        let node = of_rows(operand).filter(|_| is_one)?;
        Some(Gate {
            node,
            column: operand.offset,
            zeroes: true,
        })
    };
    let pair = |x, by| whole(x).zip(number(by));
    pair(a, b).or_else(|| pair(b, a))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::node::{Linear, Matrix, Unary};

    const WIDTH: usize = 6;

    fn node(op: Op, width: usize) -> Node {
        Node {
            op,
            rows: Rows::Tokens,
            width,
        }
    }

    fn product(x: usize) -> Node {
        let matrix = Matrix::Constant {
            values: Arc::from([]),
            rows: 0,
        };
        let linear = Linear {
            x: NodeId(x),
            matrix,
            bias: None,
            activation: None,
            residual: None,
        };
        node(Op::Linear(linear), WIDTH)
    }

    fn map(x: usize) -> Node {
        let (x, f) = (NodeId(x), Unary::Abs);
        node(Op::Map { x, f }, WIDTH)
    }

    fn operand(at: usize, offset: usize, stride: usize) -> Operand {
        Operand {
            source: Source::Node(NodeId(at)),
            offset,
            strides: vec![stride],
        }
    }

    fn zip(f: Binary, a: Operand, b: Operand) -> Node {
        let extents = vec![WIDTH];
        node(Op::Zip { f, a, b, extents }, WIDTH)
    }

    /// Hidden states, numbers for them, and the nodes that are given; the last is the output.
    fn found(nodes: impl IntoIterator<Item = Node>) -> Vec<(usize, usize, bool)> {
        let first = [node(Op::Position, WIDTH), node(Op::Position, 3)];
        let nodes: Vec<Node> = first.into_iter().chain(nodes).collect();
        let output = Output {
            name: "y".into(),
            node: NodeId(nodes.len() - 1),
            extents: vec![WIDTH],
            of_tokens: true,
        };
        let gates = gates(&nodes, &[output]);
        let gates = gates.into_iter().enumerate();
        gates
            .filter_map(|(at, gate)| gate.map(|gate| (at, gate.column, gate.zeroes)))
            .collect()
    }

    #[test]
    fn products_before_a_number_of_their_row_are_gated() {
        let expected = [(2, 1, false), (4, 1, true)];
        for (a, b) in [(4, 1), (1, 4)] {
            let [a, b] = [a, b].map(|at| match at {
                1 => operand(1, 1, 0),
                at => operand(at, 0, 1),
            });
            let found = found([product(0), map(2), product(3), zip(Binary::Mul, a, b)]);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_another_reads_or_the_numbers_are_made_of_is_not() {
        let mul = |x| zip(Binary::Mul, operand(x, 0, 1), operand(1, 1, 0));
        // The second product is read by a sum as well, the first by the second alone.
        let sum = zip(Binary::Add, operand(3, 0, 1), operand(4, 0, 1));
        assert_eq!(found([product(0), product(2), mul(3), sum]), []);
        // A function of rows that are not computed may be no number.
        assert_eq!(found([product(0), map(2), mul(3)]), []);
        // Each column has a number of its own; the sum of both is no product.
        let whole = zip(Binary::Mul, operand(2, 0, 1), operand(0, 0, 1));
        assert_eq!(found([product(0), whole]), []);
        let added = zip(Binary::Add, operand(2, 0, 1), operand(1, 1, 0));
        assert_eq!(found([product(0), added]), []);
        // Some of a product's columns.
        let part = zip(Binary::Mul, operand(2, 1, 1), operand(1, 1, 0));
        assert_eq!(found([product(0), part]), []);
        // The numbers come after the product.
        let late = zip(Binary::Mul, operand(2, 0, 1), operand(3, 1, 0));
        assert_eq!(found([product(0), map(0), late]), []);
        // What is added to the product is added to rows of 0 as well.
        let mut with = product(0);
        if let Op::Linear(linear) = &mut with.op {
            linear.residual = Some(NodeId(0));
        }
        assert_eq!(found([with, mul(2)]), []);
    }
}
