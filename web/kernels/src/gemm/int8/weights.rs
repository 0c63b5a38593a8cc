//! The matrix B as signed bytes, in the order in which tiles read it.
//!
//! Panels as for f32 (see `pack.rs`), but two or four steps of k at a time: the values of each
//! column lie side by side, as the kernel's instruction takes them. Steps that are missing at the
//! end are zeros.

use super::super::error::Mismatch;
use super::form::Form;
use super::kernel::Int8Kernel;
use super::quantise::{Scale, limit, magnitude};

/// A matrix `[k, n]` of signed bytes with a scale for each column, packed: a byte a value.
#[derive(Clone)]
pub struct Int8Weights {
    k: usize,
    n: usize,
    panel: usize,
    form: Form,
    values: Vec<i8>,
    /// By column, filled up with zeros to a whole panel.
    scales: Vec<f32>,
    /// Where the form has an offset, the sums of the columns' groups: group by group, each filled up
    /// likewise.
    sums: Vec<i32>,
}

impl Int8Weights {
    /// All zeros, to be filled column by column.
    ///
    /// # Errors
    ///
    /// If `k` is so large that sums of 32 bits overflow with activations of 8 bits, or the matrix
    /// larger than memory.
    pub fn zeros(kernel: &Int8Kernel, (k, n): (usize, usize)) -> Result<Self, Mismatch> {
        if limit(k) < 127 {
            return Err(Mismatch::new(format!(
                "sums over {k} values may overflow 32 bits: keep this matrix in f32"
            )));
        }
        let panel = kernel.panel();
        let columns = n.div_ceil(panel).checked_mul(panel);
        let len = columns
            .and_then(|columns| columns.checked_mul(k.next_multiple_of(kernel.form().steps())))
            .filter(|len| *len <= isize::MAX as usize);
        let (Some(columns), Some(len)) = (columns, len) else {
            return Err(Mismatch::new(format!(
                "a matrix [{k}, {n}] is larger than memory"
            )));
        };
        let form = kernel.form();
        let groups = match form.has_offset() {
            true => form.groups(k),
            false => 0,
        };
        Ok(Self {
            k,
            n,
            panel,
            form,
            values: vec![0; len],
            scales: vec![0.0; columns],
            sums: vec![0; groups * columns],
        })
    }

    /// Quantises a matrix in memory: the value of row `i` and column `j` is
    /// `values[i * row_stride + j * column_stride]`.
    ///
    /// # Errors
    ///
    /// As for [`Int8Weights::zeros`], or if the matrix does not lie within `values`.
    pub fn new(
        kernel: &Int8Kernel,
        (k, n): (usize, usize),
        values: &[f32],
        row_stride: usize,
        column_stride: usize,
    ) -> Result<Self, Mismatch> {
        let mut weights = Self::zeros(kernel, (k, n))?;
        let mut column = Vec::with_capacity(k);
        for j in 0..n {
            column.clear();
            column.extend((0..k).map_while(|i| {
                let at = i.checked_mul(row_stride)?;
                values.get(at.checked_add(j.checked_mul(column_stride)?)?)
            }));
            if column.len() < k {
                return Err(Mismatch::new(format!(
                    "a matrix [{k}, {n}] with strides {row_stride} and {column_stride} does not \
                     fit into {} values",
                    values.len()
                )));
            }
            weights.set_column(j, &column)?;
        }
        Ok(weights)
    }

    /// Quantises a column: a row of a linear layer's weights as they are stored.
    ///
    /// # Errors
    ///
    /// If there is no such column, or it has another length.
    pub fn set_column(&mut self, column: usize, values: &[f32]) -> Result<(), Mismatch> {
        let scale = Scale::new(magnitude(values), 127);
        let numbers = values.iter().map(|value| scale.quantise(*value) as i8);
        self.place(column, numbers, scale.scale)
    }

    /// Takes a column that is quantised already: its values are `scale * number`.
    ///
    /// # Errors
    ///
    /// As for [`Int8Weights::set_column`].
    pub fn set_quantised(
        &mut self,
        column: usize,
        numbers: &[i8],
        scale: f32,
    ) -> Result<(), Mismatch> {
        self.place(column, numbers.iter().copied(), scale)
    }

    fn place(
        &mut self,
        column: usize,
        numbers: impl ExactSizeIterator<Item = i8>,
        scale: f32,
    ) -> Result<(), Mismatch> {
        if column >= self.n || numbers.len() != self.k {
            return Err(Mismatch::new(format!(
                "column {column} of {} values does not fit a matrix [{}, {}]",
                numbers.len(),
                self.k,
                self.n
            )));
        }
        let steps = self.form.steps();
        let rows = self.k.next_multiple_of(steps);
        let start = column / self.panel * self.panel * rows + steps * (column % self.panel);
        let group = self.form.group(self.k);
        let columns = self.scales.len();
        for sum in self.sums.iter_mut().skip(column).step_by(columns) {
            *sum = 0;
        }
        for (row, number) in numbers.enumerate() {
            self.values[start + row / steps * steps * self.panel + row % steps] = number;
            if self.form.has_offset() {
                self.sums[row / group * columns + column] += i32::from(number);
            }
        }
        self.scales[column] = scale;
        Ok(())
    }

    /// Its rows: the steps of the sums.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// Its columns.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// Columns of a panel: that of the kernels that can use it.
    #[must_use]
    pub fn panel(&self) -> usize {
        self.panel
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values.len() + size_of_val(self.scales.as_slice()) + size_of_val(self.sums.as_slice())
    }

    /// The panels, one after the other.
    pub(super) fn values(&self) -> &[i8] {
        &self.values
    }

    /// How its kernels take their operands.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// The sums by column, of one group of steps; none where the form has no offset.
    pub(super) fn sums(&self, group: usize) -> &[i32] {
        let columns = self.scales.len();
        self.sums.get(group * columns..).unwrap_or(&[])
    }

    /// The scales by column.
    pub(super) fn scales(&self) -> &[f32] {
        &self.scales
    }
}

impl std::fmt::Debug for Int8Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Int8Weights")
            .field("k", &self.k)
            .field("n", &self.n)
            .field("panel", &self.panel)
            .finish_non_exhaustive()
    }
}
