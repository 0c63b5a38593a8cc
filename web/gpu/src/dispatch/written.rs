//! Decides which results are written to memory. The others are computed where they are read, as a part of the kernel
//! that reads them.

use std::collections::{HashMap, HashSet};

use isovec_encoder::program::{Node, NodeId, Op, Rows};

/// The nodes that a kernel of their own computes.
pub(crate) fn written(nodes: &[Node], outputs: &[NodeId]) -> HashSet<NodeId> {
    let needed = needed(nodes, outputs);
    let mut written: HashSet<NodeId> = outputs.iter().copied().collect();
    for &id in &needed {
        let node = &nodes[id.0];
        if is_heavy(&node.op) {
            written.insert(id);
            written.extend(node.op.inputs());
        }
    }
    loop {
        let before = written.len();
        write_what_crosses(nodes, &needed, &mut written);
        write_what_is_shared(nodes, &needed, &mut written);
        if written.len() == before {
            return written;
        }
    }
}

/// What leads to an output, in order.
fn needed(nodes: &[Node], outputs: &[NodeId]) -> Vec<NodeId> {
    let mut needed: HashSet<NodeId> = outputs.iter().copied().collect();
    for (at, node) in nodes.iter().enumerate().rev() {
        if needed.contains(&NodeId(at)) {
            needed.extend(node.op.inputs());
        }
    }
    let all = (0..nodes.len()).map(NodeId);
    all.filter(|id| needed.contains(id)).collect()
}

/// What has a kernel to itself.
pub(crate) fn is_heavy(op: &Op) -> bool {
    matches!(op, Op::Linear(_) | Op::Attention(_))
}

/// What threads of a group compute together: everything that looks at a row, or at a text, as a
/// whole.
pub(crate) fn is_stage(op: &Op) -> bool {
    matches!(
        op,
        Op::Norm(_)
            | Op::Reduce { .. }
            | Op::Softmax { .. }
            | Op::Pool { .. }
            | Op::WeightedSum { .. }
            | Op::CumSum { .. }
    )
}

/// The inputs that an operator reads in other rows than the one it computes.
pub(crate) fn elsewhere(nodes: &[Node], node: &Node) -> Vec<NodeId> {
    match &node.op {
        Op::Pool { x, .. } | Op::Take { x, .. } | Op::CumSum { x, .. } => vec![*x],
        Op::WeightedSum { x, weights } => vec![*x, *weights],
        op => {
            let other = |id: &NodeId| nodes[id.0].rows == Rows::Texts && node.rows == Rows::Tokens;
            op.inputs().into_iter().filter(other).collect()
        }
    }
}

/// A group of threads has one row at hand: what is read of another one has to be written, unless a
/// single thread can compute it.
fn write_what_crosses(nodes: &[Node], needed: &[NodeId], written: &mut HashSet<NodeId>) {
    let mut staged: HashMap<NodeId, bool> = HashMap::new();
    for &id in needed {
        let node = &nodes[id.0];
        for input in elsewhere(nodes, node) {
            if staged.get(&input) == Some(&true) {
                written.insert(input);
            }
        }
        let inputs = node.op.inputs();
        let within = |id: &NodeId| !written.contains(id) && staged.get(id) == Some(&true);
        let own = is_heavy(&node.op) || is_stage(&node.op) || inputs.iter().any(within);
        staged.insert(id, own && !written.contains(&id));
    }
}

/// What takes a group of threads is not computed in several kernels.
fn write_what_is_shared(nodes: &[Node], needed: &[NodeId], written: &mut HashSet<NodeId>) {
    let mut kernels: HashMap<NodeId, HashSet<NodeId>> = HashMap::new();
    for &id in needed.iter().rev() {
        let own: HashSet<NodeId> = match written.contains(&id) {
            true => HashSet::from([id]),
            false => kernels.get(&id).cloned().unwrap_or_default(),
        };
        for input in nodes[id.0].op.inputs() {
            kernels.entry(input).or_default().extend(&own);
        }
        if is_stage(&nodes[id.0].op) && kernels.get(&id).is_some_and(|all| all.len() > 1) {
            written.insert(id);
        }
    }
}
