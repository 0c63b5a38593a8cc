//! The matrix A as integers, row by row.

use super::super::blocks::Shared;
use super::super::epilogue::Rows;
use super::super::error::{Mismatch, check_rows};
use super::quantise::{Scale, limit, magnitude};
use crate::parallel::Pool;

/// Rows at a time: what is worth another thread's attention.
const ROWS: usize = 32;

/// Quantised rows, for one product or for several with the same A; keeps its memory for the next
/// use.
#[derive(Debug, Clone, Default)]
pub struct Activations {
    rows: usize,
    k: usize,
    /// Rows of `k` values, an odd `k` filled up with a zero.
    values: Vec<i16>,
    scales: Vec<f32>,
}

impl Activations {
    /// Takes `m` rows of `k` values, each quantised by its own largest magnitude. A row with a
    /// value that is not finite gives rows of NaN.
    ///
    /// # Errors
    ///
    /// If the rows do not lie within their values, or sums over `k` values may overflow.
    pub fn quantise(
        &mut self,
        m: usize,
        k: usize,
        from: Rows<'_>,
        pool: &dyn Pool,
    ) -> Result<(), Mismatch> {
        check_rows("A", from.values.len(), m, k, from.stride)?;
        let limit = limit(k);
        if limit < 127 {
            return Err(Mismatch::new(format!(
                "sums over {k} values may overflow 32 bits: multiply in f32"
            )));
        }
        let stride = k.next_multiple_of(2);
        (self.rows, self.k) = (m, k);
        self.values.resize(m * stride, 0);
        self.scales.resize(m, 0.0);

        let values = Shared(self.values.as_mut_ptr());
        let scales = Shared(self.scales.as_mut_ptr());
        let job = |number: usize| {
            for row in number * ROWS..m.min((number + 1) * ROWS) {
                let row_values = &from.values[row * from.stride..][..k];
                // SAFETY: both have that row, and no other job has it.
                let (to, scale_to) = unsafe {
                    (
                        std::slice::from_raw_parts_mut(values.at(row * stride), stride),
                        &mut *scales.at(row),
                    )
                };
                let scale = Scale::new(magnitude(row_values.iter().copied()), limit);
                for (to, value) in to.iter_mut().zip(row_values) {
                    *to = scale.quantise(*value);
                }
                if let Some(last) = to.get_mut(k) {
                    *last = 0;
                }
                *scale_to = scale.scale;
            }
        };
        match m.div_ceil(ROWS) {
            0 => {}
            1 => job(0),
            jobs => pool.run(jobs, &job),
        }
        Ok(())
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values of a row.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The rows, and from one to the next.
    pub(super) fn values(&self) -> (&[i16], usize) {
        (&self.values, self.k.next_multiple_of(2))
    }

    /// The scales by row.
    pub(super) fn scales(&self) -> &[f32] {
        &self.scales
    }
}
