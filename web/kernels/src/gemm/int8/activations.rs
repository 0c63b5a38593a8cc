//! The matrix A as integers, row by row.

use super::super::blocks::Shared;
use super::super::epilogue::Rows;
use super::super::error::{Mismatch, check_rows};
use super::form::Form;
use super::quantise::{Scale, limit, magnitude};
use super::weights::Int8Weights;
use crate::parallel::Pool;
use crate::simd::multiversion;

/// Rows at a time: what is worth another thread's attention.
const ROWS: usize = 32;

/// Quantised rows, for one product or for several with the same A; keeps its memory for the next
/// use.
#[derive(Debug, Clone, Default)]
pub struct Activations {
    rows: usize,
    k: usize,
    form: Form,
    /// Rows of `k` values in their form, filled up with zeros to a whole group.
    values: Vec<i16>,
    scales: Vec<f32>,
}

impl Activations {
    /// Takes `m` rows for products with B, or with other weights of as many rows for the same
    /// kernel. Each is quantised by its own largest magnitude. A row with a value that is not
    /// finite gives rows of NaN.
    ///
    /// # Errors
    ///
    /// If the rows do not lie within their values.
    pub fn quantise(
        &mut self,
        m: usize,
        from: Rows<'_>,
        b: &Int8Weights,
        pool: &dyn Pool,
    ) -> Result<(), Mismatch> {
        let (k, form) = (b.k(), b.form());
        check_rows("A", from.values.len(), m, k, from.stride)?;
        let limit = limit(k);
        let stride = k.next_multiple_of(form.steps());
        (self.rows, self.k, self.form) = (m, k, form);
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
                quantise_row(row_values, limit, form, to, scale_to);
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
        (&self.values, self.k.next_multiple_of(self.form.steps()))
    }

    /// How the rows lie.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// The scales by row.
    pub(super) fn scales(&self) -> &[f32] {
        &self.scales
    }
}

multiversion! {
    /// Quantises a row to `to`, which is as long as the form asks, and tells its scale.
    fn quantise_row(values: &[f32], limit: u16, form: Form, to: &mut [i16], scale_to: &mut f32) {
        let scale = Scale::new(magnitude(values), limit);
        let (to_values, rest) = to.split_at_mut(values.len());
        for (to, value) in to_values.iter_mut().zip(values) {
            *to = scale.quantise(*value);
        }
        rest.fill(0);
        form.arrange(to);
        *scale_to = scale.scale;
    }
}
