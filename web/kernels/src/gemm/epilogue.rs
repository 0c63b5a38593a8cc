//! The operations on sums while they are still in the cache.

use super::error::{Mismatch, check_rows};
use crate::simd::multiversion;

/// Rows in memory: row `i` starts at `values[i * stride]`.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// All values, from the first row's first on.
    pub values: &'a [f32],
    /// From one row to the next, in values.
    pub stride: usize,
}

/// `activation(x + bias) + residual` within limits, each part only where it is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue<'a> {
    /// A value for each column.
    pub bias: Option<&'a [f32]>,
    /// Applied in place to segments of rows, of any length: it may look at one value at a time.
    pub activation: Option<fn(&mut [f32])>,
    /// A matrix of C's shape.
    pub residual: Option<Rows<'a>>,
    /// The least and the most that a value may be. NaN stays NaN.
    pub limits: Option<(f32, f32)>,
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
        self.bias.is_none()
            && self.activation.is_none()
            && self.residual.is_none()
            && self.limits.is_none()
    }

    /// Applies it to a segment of `row` that starts at `column`.
    pub(super) fn apply(&self, row: usize, column: usize, segment: &mut [f32]) {
        self.apply_to_rows(row, column, segment.len(), segment);
    }

    /// Applies it to segments of `width` values of the rows from `first` on, one after another in `segments`.
    pub(super) fn apply_to_rows(
        &self,
        first: usize,
        column: usize,
        width: usize,
        segments: &mut [f32],
    ) {
        match self.activation {
            None => finish(self, Parts::ALL, [first, column, width], segments),
            Some(activation) => {
                if self.bias.is_some() {
                    finish(self, Parts::BIAS, [first, column, width], segments);
                }
                activation(segments);
                if self.residual.is_some() || self.limits.is_some() {
                    finish(self, Parts::AFTER, [first, column, width], segments);
                }
            }
        }
    }
}

/// The parts of an epilogue that one pass does.
#[derive(Clone, Copy)]
struct Parts {
    before: bool,
    after: bool,
}

impl Parts {
    const ALL: Self = Self {
        before: true,
        after: true,
    };
    const BIAS: Self = Self {
        before: true,
        after: false,
    };
    const AFTER: Self = Self {
        before: false,
        after: true,
    };
}

multiversion! {
    /// The parts that are no function, for segments of `width` values from `column` on, of the rows from `first` on.
    fn finish(epilogue: &Epilogue<'_>, parts: Parts, place: [usize; 3], segments: &mut [f32]) {
        let [first, column, width] = place;
        let bias = epilogue.bias.filter(|_| parts.before).map(|bias| &bias[column..column + width]);
        let residual = epilogue.residual.filter(|_| parts.after);
        let limits = epilogue.limits.filter(|_| parts.after);
        for (segment, row) in segments.chunks_exact_mut(width.max(1)).zip(first..) {
            let residual = residual.map(|residual| &residual.values[row * residual.stride + column..][..width]);
            one(segment, bias, residual, limits);
        }
    }
}

/// One segment: in one pass for the cases that products mostly have.
#[inline(always)]
fn one(x: &mut [f32], bias: Option<&[f32]>, residual: Option<&[f32]>, limits: Option<(f32, f32)>) {
    let limit = |x: f32, (least, most): (f32, f32)| {
        let above = if x < least { least } else { x };
        if above > most { most } else { above }
    };
    match (bias, residual, limits) {
        (Some(bias), None, Some(limits)) => {
            for (x, bias) in x.iter_mut().zip(bias) {
                *x = limit(*x + bias, limits);
            }
            return;
        }
        (Some(bias), Some(residual), Some(limits)) => {
            for ((x, bias), residual) in x.iter_mut().zip(bias).zip(residual) {
                *x = limit(*x + bias + residual, limits);
            }
            return;
        }
        (Some(bias), Some(residual), None) => {
            for ((x, bias), residual) in x.iter_mut().zip(bias).zip(residual) {
                *x = *x + bias + residual;
            }
            return;
        }
        _ => {}
    }
    for added in [bias, residual].into_iter().flatten() {
        for (x, added) in x.iter_mut().zip(added) {
            *x += added;
        }
    }
    if let Some(limits) = limits {
        for x in x {
            *x = limit(*x, limits);
        }
    }
}
