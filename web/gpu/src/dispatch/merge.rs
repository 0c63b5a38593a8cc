//! Products of the same matrix, as those for queries, keys and values, become one.

use std::collections::{HashMap, HashSet};

use isovec_encoder::Program;
use isovec_encoder::program::{Floats, Node, NodeId, Op};

use super::Merged;

/// One of the matrices of a product.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Where the matrix is among the program's.
    pub(crate) place: usize,
    /// Its columns.
    pub(crate) width: usize,
    pub(crate) bias: Option<Floats>,
}

/// Merges products that read the same node and that attention alone reads.
pub(crate) fn merge(program: &Program) -> Merged {
    let mut nodes = program.nodes.clone();
    let mut parts = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let (Op::Linear(linear), Some(place)) = (&node.op, program.places[at]) {
            let part = Part {
                place,
                width: node.width,
                bias: linear.bias.clone(),
            };
            parts.insert(NodeId(at), vec![part]);
        }
    }
    let outputs: HashSet<NodeId> = program.outputs.iter().map(|output| output.node).collect();
    let alone = |id: &NodeId| {
        !outputs.contains(id)
            && nodes
                .iter()
                .filter(|node| node.op.inputs().contains(id))
                .all(|node| matches!(node.op, Op::Attention(_)))
    };
    let mut siblings: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Op::Linear(linear) = &node.op
            && linear.activation.is_none()
            && linear.residual.is_none()
            && alone(&NodeId(at))
        {
            siblings.entry(linear.x).or_default().push(NodeId(at));
        }
    }
    // From the node that is gone to the one that has its columns, and from which column on.
    let mut moved: HashMap<NodeId, (NodeId, usize)> = HashMap::new();
    for siblings in siblings.values().filter(|all| all.len() > 1) {
        let first = siblings[0];
        for &other in &siblings[1..] {
            let gone: Vec<Part> = parts.remove(&other).unwrap_or_default();
            moved.insert(other, (first, nodes[first.0].width));
            nodes[first.0].width += nodes[other.0].width;
            parts.entry(first).or_default().extend(gone);
        }
    }
    for node in &mut nodes {
        if let Op::Attention(attention) = &mut node.op {
            for columns in [
                &mut attention.query,
                &mut attention.key,
                &mut attention.value,
            ] {
                if let Some(&(first, offset)) = moved.get(&columns.node) {
                    columns.node = first;
                    columns.offset += offset;
                }
            }
        }
    }
    Merged {
        nodes: nodes
            .into_iter()
            .enumerate()
            .map(|(at, node)| emptied(&moved, NodeId(at), node))
            .collect(),
        parts,
        halves: HashSet::new(),
    }
}

/// What nothing reads any more: its place stays, so that the others keep theirs.
fn emptied(moved: &HashMap<NodeId, (NodeId, usize)>, id: NodeId, node: Node) -> Node {
    match moved.contains_key(&id) {
        true => Node {
            op: Op::Position,
            ..node
        },
        false => node,
    }
}
