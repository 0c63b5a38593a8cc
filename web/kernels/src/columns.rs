//! Some columns of a matrix.

use std::ops::Range;

/// A run of columns of a row-major matrix: one part of a buffer that several results share, such
/// as the keys in `[tokens, queries + keys + values]`.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    values: &'a [f32],
    stride: usize,
    first: usize,
    width: usize,
}

impl<'a> Columns<'a> {
    /// `width` columns from column `first` on, of a matrix whose rows are `stride` elements long.
    ///
    /// # Panics
    /// When the columns lie outside the rows, or the values are not whole rows.
    pub fn new(values: &'a [f32], stride: usize, first: usize, width: usize) -> Self {
        assert!(
            stride > 0 && first + width <= stride && values.len().is_multiple_of(stride),
            "columns {first} to {} of rows of {stride}, of {} values",
            first + width,
            values.len()
        );
        Self {
            values,
            stride,
            first,
            width,
        }
    }

    /// All columns of a matrix whose rows are `width` elements long.
    ///
    /// # Panics
    /// When the values are not whole rows.
    pub fn all(values: &'a [f32], width: usize) -> Self {
        Self::new(values, width, 0, width)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.stride
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Some of the columns.
    ///
    /// # Panics
    /// When there are not that many.
    pub(crate) fn part(&self, first: usize, width: usize) -> Self {
        assert!(
            first + width <= self.width,
            "columns {first} to {}",
            first + width
        );
        Self {
            first: self.first + first,
            width,
            ..*self
        }
    }

    /// Rows that follow one another, from the first one's first column to the last one's last, and from one row to the next.
    ///
    /// # Panics
    /// When there are no such rows.
    pub(crate) fn rows_of(&self, rows: Range<usize>) -> (&'a [f32], usize) {
        let length = rows
            .len()
            .checked_sub(1)
            .map_or(0, |last| last * self.stride + self.width);
        let first = rows.start * self.stride + self.first;
        (&self.values[first..first + length], self.stride)
    }

    /// The columns of one row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn row(&self, row: usize) -> &'a [f32] {
        &self.values[row * self.stride + self.first..][..self.width]
    }
}
