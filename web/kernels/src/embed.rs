//! Embeddings: adds up rows of tables, and normalises the sums in the same pass.

use std::ops::Range;

use crate::dequantize::f16;
use crate::error::KernelError;
use crate::norm::Norm;
use crate::ragged;
use crate::simd::multiversion;

/// The values of a table, row after row.
#[derive(Debug, Clone, Copy)]
pub enum TableValues<'a> {
    /// As they are.
    F32(&'a [f32]),
    /// The bits of IEEE 754 binary16.
    F16(&'a [u16]),
    /// Times a scale for every row.
    I8 {
        /// The values.
        values: &'a [i8],
        /// One for every row.
        scales: &'a [f32],
    },
}

/// A table `[rows, width]`.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    pub(crate) values: TableValues<'a>,
    pub(crate) width: usize,
    rows: usize,
}

impl<'a> Table<'a> {
    /// A table of rows of `width` elements.
    ///
    /// # Panics
    /// When the values are not whole rows, or there is not one scale for every row.
    pub fn new(values: TableValues<'a>, width: usize) -> Self {
        let (count, scales) = match values {
            TableValues::F32(values) => (values.len(), None),
            TableValues::F16(values) => (values.len(), None),
            TableValues::I8 { values, scales } => (values.len(), Some(scales.len())),
        };
        let rows = count.checked_div(width).unwrap_or(0);
        assert!(
            width > 0 && rows * width == count && scales.is_none_or(|scales| scales == rows),
            "{count} values with {scales:?} scales in rows of {width}"
        );
        Self {
            values,
            width,
            rows,
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// `out = combine(out, row)`, element by element.
    #[inline(always)]
    fn with_row(&self, row: usize, out: &mut [f32], combine: impl Fn(f32, f32) -> f32) {
        let part = row * self.width..(row + 1) * self.width;
        match self.values {
            TableValues::F32(values) => {
                for (out, value) in out.iter_mut().zip(&values[part]) {
                    *out = combine(*out, *value);
                }
            }
            TableValues::F16(values) => {
                for (out, value) in out.iter_mut().zip(&values[part]) {
                    *out = combine(*out, f16(*value));
                }
            }
            TableValues::I8 { values, scales } => {
                let scale = scales[row];
                for (out, value) in out.iter_mut().zip(&values[part]) {
                    *out = combine(*out, f32::from(*value) * scale);
                }
            }
        }
    }
}

/// Which row a token takes.
#[derive(Debug, Clone, Copy)]
pub enum Index<'a> {
    /// An id for every token of the batch.
    Ids(&'a [i64]),
    /// The token's position in its text, counted from `first`.
    Position {
        /// The row of a text's first token.
        first: usize,
    },
    /// The same row for all.
    Row(usize),
}

/// A table and which of its rows is taken.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// The table.
    pub table: Table<'a>,
    /// Which row.
    pub index: Index<'a>,
}

impl Lookup<'_> {
    fn check(
        &self,
        lookup: usize,
        offsets: &[usize],
        tokens: &Range<usize>,
    ) -> Result<(), KernelError> {
        let rows = self.table.rows;
        match self.index {
            Index::Ids(ids) => {
                let in_table = |id: i64| usize::try_from(id).is_ok_and(|id| id < rows);
                match tokens.clone().find(|&token| !in_table(ids[token])) {
                    Some(token) => Err(KernelError::Id {
                        lookup,
                        token,
                        id: ids[token],
                        rows,
                    }),
                    None => Ok(()),
                }
            }
            Index::Position { first } => ragged::check_lengths(offsets, rows.saturating_sub(first)),
            Index::Row(row) => {
                assert!(row < rows, "row {row} of {rows}");
                Ok(())
            }
        }
    }
}

/// The sum of one row of each table for the tokens of a range, `[tokens, width]`, normalised where
/// `norm` is given.
///
/// `offsets` says where each text of the batch begins and, at the end, how many tokens there are.
/// Rows are added in the order of the lookups.
///
/// # Errors
/// [`KernelError::Id`] and [`KernelError::TooLong`] when a row is not in its table.
///
/// # Panics
/// When there is no lookup, or the widths of the tables, the norm and `out` differ, or the range
/// reaches past the batch.
pub fn embed(
    lookups: &[Lookup<'_>],
    offsets: &[usize],
    tokens: Range<usize>,
    norm: Option<&Norm<'_>>,
    out: &mut [f32],
) -> Result<(), KernelError> {
    let width = lookups.first().map_or(0, |lookup| lookup.table.width);
    assert!(
        width > 0
            && lookups.iter().all(|lookup| lookup.table.width == width)
            && norm.is_none_or(|norm| norm.width() == width)
            && out.len() == tokens.len() * width,
        "{} tables to {} values of {} tokens",
        lookups.len(),
        out.len(),
        tokens.len()
    );
    for (number, lookup) in lookups.iter().enumerate() {
        lookup.check(number, offsets, &tokens)?;
    }
    gather(lookups, offsets, tokens, norm, out);
    Ok(())
}

multiversion! {
    fn gather(
        lookups: &[Lookup<'_>],
        offsets: &[usize],
        tokens: Range<usize>,
        norm: Option<&Norm<'_>>,
        out: &mut [f32],
    ) {
        let Some(width) = lookups.first().map(|lookup| lookup.table.width) else {
            return;
        };
        let positions = ragged::positions(offsets, tokens.clone());
        for ((token, position), out) in tokens.zip(positions).zip(out.chunks_exact_mut(width)) {
            for (number, lookup) in lookups.iter().enumerate() {
                let row = match lookup.index {
                    Index::Ids(ids) => ids[token] as usize,
                    Index::Position { first } => first + position,
                    Index::Row(row) => row,
                };
                if number == 0 {
                    lookup.table.with_row(row, out, |_, value| value);
                } else {
                    lookup.table.with_row(row, out, |sum, value| sum + value);
                }
            }
            if let Some(norm) = norm {
                norm.row(out);
            }
        }
    }
}
