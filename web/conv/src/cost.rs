//! The cost of an operator, by the same rule for profiles and for slices of a run.

use crate::node::{Node, Op};

/// Parts of a node's result that can be computed one after another: rows of pixels, or all of it.
pub(crate) fn units(node: &Node) -> usize {
    match node.op {
        Op::Mean { .. } | Op::Planes { .. } => 1,
        _ => node.map.height,
    }
}

/// Multiply-adds of a unit: exact for convolutions and products, for others what takes about as long.
pub(crate) fn of_unit(node: &Node) -> u64 {
    let values = (node.map.len() / units(node)) as u64;
    let each = match &node.op {
        Op::Conv(conv) => conv.steps() as u64,
        Op::MaxPool { windows, .. } | Op::AveragePool { windows, .. } => {
            windows.window.taps() as u64
        }
        Op::Attention { .. } => 2 * node.map.width as u64,
        Op::Norm { .. } | Op::Softmax { .. } | Op::Unit { .. } => 8,
        _ => 2,
    };
    let finish = match node.finish.activation {
        Some(_) => 8,
        None => 0,
    };
    values.saturating_mul(each + finish)
}
