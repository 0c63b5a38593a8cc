//! Fuses operators with the product before them or the normalisation after them, and removes operators that nothing
//! reads.

use std::collections::HashMap;

use crate::lower::Lowered;
use crate::node::{self, Binary, Node, NodeId, Op, Unary};

/// Fuses what can be fused, and takes out what does not lead to an output.
pub(crate) fn fuse(lowered: &mut Lowered) {
    sweep(lowered);
    activations(lowered);
    sweep(lowered);
    residuals(lowered);
    sweep(lowered);
    sums_before_norms(lowered);
    sweep(lowered);
}

fn readers(lowered: &Lowered) -> Vec<usize> {
    let shown = lowered.outputs.iter().map(|output| output.node);
    node::readers(&lowered.builder.nodes, shown)
}

/// Activations into the products before them.
fn activations(lowered: &mut Lowered) {
    let readers = readers(lowered);
    for at in 0..lowered.builder.nodes.len() {
        let Op::Map { x, f } = lowered.builder.nodes[at].op else {
            continue;
        };
        let Op::Linear(linear) = &lowered.builder.nodes[x.0].op else {
            continue;
        };
        if readers[x.0] == 1 && linear.activation.is_none() && linear.residual.is_none() && cheap(f)
        {
            let mut linear = linear.clone();
            linear.activation = Some(f);
            lowered.builder.nodes[at].op = Op::Linear(linear);
        }
    }
}

/// What the epilogue of a product can apply to a stretch of a row.
fn cheap(f: Unary) -> bool {
    use crate::run::activation;
    activation(f).is_some()
}

/// Sums with a product into that product. It takes the sum's place, since what is added may be
/// computed after it.
fn residuals(lowered: &mut Lowered) {
    let readers = readers(lowered);
    for at in 0..lowered.builder.nodes.len() {
        let Node { op, rows, width } = &lowered.builder.nodes[at];
        let Some((a, b)) = plain_sum(op) else {
            continue;
        };
        let fits = |node: NodeId| {
            let node = &lowered.builder.nodes[node.0];
            node.rows == *rows && node.width == *width
        };
        if !fits(a) || !fits(b) || a == b {
            continue;
        }
        let product = [(b, a), (a, b)].into_iter().find_map(|(product, other)| {
            match &lowered.builder.nodes[product.0].op {
                Op::Linear(linear) if readers[product.0] == 1 && linear.residual.is_none() => {
                    Some((linear.clone(), other))
                }
                _ => None,
            }
        });
        if let Some((mut linear, other)) = product {
            linear.residual = Some(other);
            lowered.builder.nodes[at].op = Op::Linear(linear);
        }
    }
}

/// Sums that only a normalisation reads into that normalisation.
fn sums_before_norms(lowered: &mut Lowered) {
    let readers = readers(lowered);
    for at in 0..lowered.builder.nodes.len() {
        let Op::Norm(norm) = &lowered.builder.nodes[at].op else {
            continue;
        };
        let sum = &lowered.builder.nodes[norm.x.0];
        let Some((a, b)) = plain_sum(&sum.op) else {
            continue;
        };
        let fits = |node: NodeId| {
            let node = &lowered.builder.nodes[node.0];
            node.rows == sum.rows && node.width == sum.width
        };
        if readers[norm.x.0] == 1 && norm.residual.is_none() && a != b && fits(a) && fits(b) {
            let mut norm = norm.clone();
            (norm.x, norm.residual) = (a, Some(b));
            lowered.builder.nodes[at].op = Op::Norm(norm);
        }
    }
}

/// The operands of a sum of two whole matrices.
fn plain_sum(op: &Op) -> Option<(NodeId, NodeId)> {
    op.plain()
        .filter(|(f, ..)| *f == Binary::Add)
        .map(|(_, a, b)| (a, b))
}

/// Takes out what no output needs.
fn sweep(lowered: &mut Lowered) {
    let nodes = &lowered.builder.nodes;
    let mut needed = vec![false; nodes.len()];
    for output in &lowered.outputs {
        needed[output.node.0] = true;
    }
    for at in (0..nodes.len()).rev() {
        if needed[at] {
            for input in nodes[at].op.inputs() {
                needed[input.0] = true;
            }
        }
    }
    let mut moved: HashMap<NodeId, NodeId> = HashMap::new();
    let mut kept = Vec::new();
    for (at, mut node) in std::mem::take(&mut lowered.builder.nodes)
        .into_iter()
        .enumerate()
    {
        if needed[at] {
            node.op.rename(&moved);
            moved.insert(NodeId(at), NodeId(kept.len()));
            kept.push(node);
        }
    }
    lowered.builder.nodes = kept;
    for output in &mut lowered.outputs {
        if let Some(&new) = moved.get(&output.node) {
            output.node = new;
        }
    }
}
