//! The operations on sums while they are still in the cache.

use super::error::{Mismatch, check_rows};

/// Rows in memory: row `i` starts at `values[i * stride]`.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// All values, from the first row's first on.
    pub values: &'a [f32],
    /// From one row to the next, in values.
    pub stride: usize,
}

/// `activation(x + bias) + residual`, each part only where it is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// A value for each column.
    pub bias: Option<&'a [f32]>,
    /// Applied in place to segments of rows, of any length: it may look at one value at a time.
    pub activation: Option<fn(&mut [f32])>,
    /// A matrix of C's shape.
    pub residual: Option<Rows<'a>>,
}

impl Epilogue<'_> {
    /// Whether the parts fit an output of that shape.
    pub(super) fn check(&self, rows: usize, columns: usize) -> Result<(), Mismatch> {
        if let Some(bias) = self.bias
            && bias.len() != columns
        {
            return Err(Mismatch::new(format!(
                "the bias has {} values for {columns} columns",
                bias.len()
            )));
        }
        match self.residual {
            Some(residual) => check_rows(
                "the residual",
                residual.values.len(),
                rows,
                columns,
                residual.stride,
            ),
            None => Ok(()),
        }
    }

    /// Whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.bias.is_none() && self.activation.is_none() && self.residual.is_none()
    }

    /// Applies it to a segment of `row` that starts at `column`.
    pub(super) fn apply(&self, row: usize, column: usize, segment: &mut [f32]) {
        if let Some(bias) = self.bias {
            for (value, bias) in segment.iter_mut().zip(&bias[column..]) {
                *value += bias;
            }
        }
        if let Some(activation) = self.activation {
            activation(segment);
        }
        if let Some(residual) = self.residual {
            let from = &residual.values[row * residual.stride + column..];
            for (value, residual) in segment.iter_mut().zip(from) {
                *value += residual;
            }
        }
    }
}
