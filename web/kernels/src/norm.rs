//! Normalisation of rows over the last axis.

use crate::reduce;
use crate::simd::multiversion;

/// How a row is centred and scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// `(x - mean) / sqrt(var + epsilon)` (<https://arxiv.org/abs/1607.06450>).
    Layer,
    /// `x / sqrt(mean(x^2) + epsilon)` (<https://arxiv.org/abs/1910.07467>).
    RootMeanSquare,
}

/// A normalisation with learnt parameters: the result of [`NormKind`], times `gamma`, plus `beta`.
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    kind: NormKind,
    gamma: &'a [f32],
    beta: Option<&'a [f32]>,
    epsilon: f32,
}

impl<'a> Norm<'a> {
    /// A normalisation of rows of as many elements as `gamma` has.
    ///
    /// # Panics
    /// When `gamma` is empty or `beta` has another length.
    pub fn new(kind: NormKind, gamma: &'a [f32], beta: Option<&'a [f32]>, epsilon: f32) -> Self {
        assert!(
            !gamma.is_empty() && beta.is_none_or(|beta| beta.len() == gamma.len()),
            "a gamma of {} and a beta of {:?}",
            gamma.len(),
            beta.map(<[f32]>::len)
        );
        Self {
            kind,
            gamma,
            beta,
            epsilon,
        }
    }

    /// The number of elements of a row.
    pub fn width(&self) -> usize {
        self.gamma.len()
    }

    /// `x = norm(x)` for every row.
    ///
    /// # Panics
    /// When `x` is not whole rows.
    pub fn apply(&self, x: &mut [f32]) {
        self.check(x, x.len());
        in_place(self, x);
    }

    /// `out = norm(x)` for every row.
    ///
    /// # Panics
    /// When `x` is not whole rows or `out` has another length.
    pub fn apply_to(&self, x: &[f32], out: &mut [f32]) {
        self.check(x, out.len());
        to(self, x, out);
    }

    /// `x = norm(x + residual)` for every row.
    ///
    /// # Panics
    /// When `x` is not whole rows or `residual` has another length.
    pub fn add_apply(&self, x: &mut [f32], residual: &[f32]) {
        self.check(x, residual.len());
        add(self, x, residual);
    }

    /// `sum = sum + residual`, then `out = norm(sum)`, for every row: for models that normalise
    /// before a layer and carry the sum past it.
    ///
    /// # Panics
    /// When `sum` is not whole rows or `residual` or `out` has another length.
    pub fn add_apply_to(&self, sum: &mut [f32], residual: &[f32], out: &mut [f32]) {
        self.check(sum, residual.len());
        self.check(sum, out.len());
        add_to(self, sum, residual, out);
    }

    fn check(&self, x: &[f32], other: usize) {
        assert!(
            x.len().is_multiple_of(self.width()) && other == x.len(),
            "rows of {} of {} and {other} values",
            self.width(),
            x.len()
        );
    }

    /// One row of the right length. Two passes: the variance is the mean of squared distances from
    /// the mean, which loses nothing where the mean is large.
    #[inline(always)]
    pub(crate) fn row(&self, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = match self.kind {
            NormKind::Layer => reduce::sum(row, |x| x) / count,
            NormKind::RootMeanSquare => 0.0,
        };
        let variance = reduce::sum(row, |x| (x - mean) * (x - mean)) / count;
        let scale = 1.0 / (variance + self.epsilon).sqrt();
        match self.beta {
            Some(beta) => {
                for ((x, gamma), beta) in row.iter_mut().zip(self.gamma).zip(beta) {
                    *x = (*x - mean) * scale * gamma + beta;
                }
            }
            None => {
                for (x, gamma) in row.iter_mut().zip(self.gamma) {
                    *x = (*x - mean) * scale * gamma;
                }
            }
        }
    }
}

multiversion! {
    fn in_place(norm: &Norm<'_>, x: &mut [f32]) {
        for row in x.chunks_exact_mut(norm.width()) {
            norm.row(row);
        }
    }
}

multiversion! {
    fn to(norm: &Norm<'_>, x: &[f32], out: &mut [f32]) {
        let width = norm.width();
        for (x, out) in x.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(x);
            norm.row(out);
        }
    }
}

multiversion! {
    fn add(norm: &Norm<'_>, x: &mut [f32], residual: &[f32]) {
        let width = norm.width();
        for (x, residual) in x.chunks_exact_mut(width).zip(residual.chunks_exact(width)) {
            for (x, residual) in x.iter_mut().zip(residual) {
                *x += residual;
            }
            norm.row(x);
        }
    }
}

multiversion! {
    fn add_to(norm: &Norm<'_>, sum: &mut [f32], residual: &[f32], out: &mut [f32]) {
        let width = norm.width();
        let rows = sum.chunks_exact_mut(width).zip(residual.chunks_exact(width));
        for ((sum, residual), out) in rows.zip(out.chunks_exact_mut(width)) {
            for ((sum, residual), out) in sum.iter_mut().zip(residual).zip(&mut *out) {
                *sum += residual;
                *out = *sum;
            }
            norm.row(out);
        }
    }
}

multiversion! {
    /// `x / max(||x||, epsilon)` for every row of `[rows, width]`, in place, with the L2 norm.
    ///
    /// # Panics
    /// When `width` is 0 or `x` is not whole rows.
    pub fn l2_normalize(x: &mut [f32], width: usize, epsilon: f32) {
        assert!(width > 0 && x.len().is_multiple_of(width), "rows of {width} of {} values", x.len());
        for row in x.chunks_exact_mut(width) {
            let norm = reduce::sum(row, |x| x * x).sqrt();
            // In this order, so that a norm of NaN is kept.
            let by = if norm < epsilon { epsilon } else { norm };
            for x in row {
                *x /= by;
            }
        }
    }
}
