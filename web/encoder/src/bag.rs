//! Pooled lookups: for the processor a sum over a text's tokens reads the rows of a table where they are, so that no row is
//! written for a token. A program has them apart, as a GPU runs them.

use crate::constant::strides;
use crate::lower::Output;
use crate::node::{Binary, Node, NodeId, Op, Operand, Reduction, Rows, Source, readers};

/// A text's rows of a table, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bag {
    /// The rows.
    pub(crate) rows: Lookup,
    /// The factor of each row, from a table of one column.
    pub(crate) factors: Option<Lookup>,
    /// Whether the sum is divided by the number of tokens.
    pub(crate) mean: bool,
}

impl Bag {
    /// The nodes that it reads.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = NodeId> {
        let lookups = [Some(self.rows), self.factors].into_iter().flatten();
        lookups.map(|lookup| lookup.ids)
    }
}

/// A row of a table for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lookup {
    /// Where the table is among the weights.
    pub(crate) table: usize,
    /// The rows' numbers.
    pub(crate) ids: NodeId,
}

/// The work of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Its operator's.
    Own,
    /// None: its one reader looks up itself.
    None,
    /// It looks up and adds up.
    Bag(Bag),
}

/// The work of each node of a program.
pub(crate) fn work(nodes: &[Node], places: &[Option<usize>], outputs: &[Output]) -> Vec<Work> {
    let readers = readers(nodes, outputs.iter().map(|output| output.node));
    let program = Lookups { nodes, places };
    let mut work = vec![Work::Own; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let Op::Pool { x, f } = node.op else { continue };
        let mean = match f {
            Reduction::Sum => false,
            Reduction::Mean => true,
            _ => continue,
        };
        let Some((read, rows, factors)) = program.pooled(x) else {
            continue;
        };
        if read
            .iter()
            .flatten()
            .all(|NodeId(node)| readers[*node] == 1)
        {
            for NodeId(node) in read.into_iter().flatten() {
                work[node] = Work::None;
            }
            work[at] = Work::Bag(Bag {
                rows,
                factors,
                mean,
            });
        }
    }
    work
}

/// A program's nodes, and the places of their tables.
struct Lookups<'a> {
    nodes: &'a [Node],
    places: &'a [Option<usize>],
}

impl Lookups<'_> {
    /// What is looked up for a node with a row for each token, and the nodes that need not be computed then.
    fn pooled(&self, x: NodeId) -> Option<([Option<NodeId>; 3], Lookup, Option<Lookup>)> {
        if let Some(rows) = self.lookup(x) {
            return Some(([Some(x), None, None], rows, None));
        }
        let Node {
            op:
                Op::Zip {
                    f: Binary::Mul,
                    a,
                    b,
                    extents,
                },
            rows: Rows::Tokens,
            width,
        } = &self.nodes[x.0]
        else {
            return None;
        };
        let whole = |operand: &Operand| self.operand(operand, *width, &strides(extents));
        let factor = |operand: &Operand| self.operand(operand, 1, &vec![0; extents.len()]);
        let (row, factor) = match (whole(a), factor(b)) {
            (Some(row), Some(factor)) => (row, factor),
            _ => (whole(b)?, factor(a)?),
        };
        let read = [Some(x), Some(row), Some(factor)];
        Some((read, self.lookup(row)?, Some(self.lookup(factor)?)))
    }

    /// The node of an operand that is of this width and is walked in this way.
    fn operand(&self, operand: &Operand, width: usize, strides: &[usize]) -> Option<NodeId> {
        let Source::Node(node) = operand.source else {
            return None;
        };
        let fits = operand.offset == 0 && operand.strides == strides;
        (fits && self.nodes[node.0].width == width).then_some(node)
    }

    /// A node that is a row of a table for each token.
    fn lookup(&self, node: NodeId) -> Option<Lookup> {
        let per_token = |node: NodeId| self.nodes[node.0].rows == Rows::Tokens;
        match self.nodes[node.0].op {
            Op::Gather { ids, .. } if per_token(node) && per_token(ids) => Some(Lookup {
                table: self.places[node.0]?,
                ids,
            }),
            _ => None,
        }
    }
}
