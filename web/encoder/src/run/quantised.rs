//! The quantised rows of a product's operand, kept for the next product of the same rows: queries, keys and values
//! are made of the same hidden states.

use std::ops::Range;

use isovec_kernels::gemm::{Activations, Int8Weights, Mismatch, Rows};
use isovec_kernels::parallel::Pool;

use crate::node::NodeId;

/// What was quantised last.
#[derive(Debug, Default)]
pub(super) struct Quantised {
    of: Option<(NodeId, Range<usize>)>,
    rows: Activations,
}

impl Quantised {
    /// Rows `range` of a node, `x`, for a product with `weights`.
    pub(super) fn take(
        &mut self,
        node: NodeId,
        range: Range<usize>,
        x: Rows<'_>,
        weights: &Int8Weights,
        pool: &dyn Pool,
    ) -> Result<&Activations, Mismatch> {
        let asked = Some((node, range.clone()));
        if self.of != asked {
            self.of = None;
            self.rows.quantise(range.len(), x, weights, pool)?;
            self.of = asked;
        }
        Ok(&self.rows)
    }
}
