//! Softmax over the last axis.

use crate::math::exp_of_negative;
use crate::reduce;
use crate::simd::multiversion;

multiversion! {
    /// `e^(x - max) / sum(e^(x - max))` of every row of `[rows, width]`, in place.
    ///
    /// A row that holds NaN or +infinity, or nothing but -infinity, becomes NaN.
    ///
    /// # Panics
    /// When `width` is 0 or `x` is not whole rows.
    pub fn softmax(x: &mut [f32], width: usize) {
        assert!(width > 0 && x.len().is_multiple_of(width), "rows of {width} of {} values", x.len());
        for row in x.chunks_exact_mut(width) {
            let max = reduce::max(row);
            for x in row.iter_mut() {
                *x = exp_of_negative(*x - max);
            }
            let sum = reduce::sum(row, |x| x);
            for x in row.iter_mut() {
                *x /= sum;
            }
        }
    }
}
