//! The matrix A as integers, row by row.

use super::super::blocks::Shared;
use super::super::epilogue::Rows;
use super::super::error::{Mismatch, check_rows};
use super::form::{ActivationBits, Form, GROUP};
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
    /// Rows of `k` values in their form, filled up with zeros to a whole group of steps.
    values: Vec<i16>,
    /// Row by row, one for each group of values.
    scales: Vec<f32>,
}

impl Activations {
    /// Takes `m` rows for products with B, or with other weights of as many rows for the same
    /// kernel. Each is quantised by its own largest magnitude, or group by group, as the kernel
    /// takes them. A row with a value that is not finite gives rows of NaN.
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
        let (stride, groups) = (form.words(k), form.groups(k));
        (self.rows, self.k, self.form) = (m, k, form);
        self.values.resize(m * stride, 0);
        self.scales.resize(m * groups, 0.0);

        let values = Shared(self.values.as_mut_ptr());
        let scales = Shared(self.scales.as_mut_ptr());
        let job = |number: usize| {
            for row in number * ROWS..m.min((number + 1) * ROWS) {
                let row_values = &from.values[row * from.stride..][..k];
                // SAFETY: both have that row, and no other job has it.
                let (to, scales_to) = unsafe {
                    (
                        std::slice::from_raw_parts_mut(values.at(row * stride), stride),
                        std::slice::from_raw_parts_mut(scales.at(row * groups), groups),
                    )
                };
                match form.bits {
                    ActivationBits::Wide => wide(row_values, form, to, scales_to),
                    ActivationBits::Eight => eight(row_values, form, to, scales_to),
                }
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
        (&self.values, self.form.words(self.k))
    }

    /// How the rows lie.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// The scales by row, and from one row to the next.
    pub(super) fn scales(&self) -> (&[f32], usize) {
        (&self.scales, self.form.groups(self.k))
    }
}

multiversion! {
    /// Quantises a row to `to`, which is as long as the form asks, and tells its one scale.
    fn wide(values: &[f32], form: Form, to: &mut [i16], scale_to: &mut [f32]) {
        let scale = Scale::new(magnitude(values), limit(values.len()));
        let (to_values, rest) = to.split_at_mut(values.len());
        for (to, value) in to_values.iter_mut().zip(values) {
            *to = scale.quantise(*value);
        }
        rest.fill(0);
        form.arrange_wide(to);
        scale_to.fill(scale.scale);
    }
}

multiversion! {
    /// The same group by group, to 8 bits.
    fn eight(values: &[f32], form: Form, to: &mut [i16], scales_to: &mut [f32]) {
        scales_to.fill(0.0);
        let groups = values.chunks(GROUP).zip(to.chunks_mut(form.words(GROUP)));
        for ((values, to), scale_to) in groups.zip(scales_to) {
            let scale = Scale::new(magnitude(values), 127);
            let mut numbers = [0; GROUP];
            for (number, value) in numbers.iter_mut().zip(values) {
                *number = scale.quantise(*value);
            }
            let padded = values.len().next_multiple_of(form.steps());
            form.arrange_eight(&numbers[..padded], to);
            *scale_to = scale.scale;
        }
    }
}
