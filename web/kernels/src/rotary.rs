//! Rotary positions (<https://arxiv.org/abs/2104.09864>), halves paired: element `i` of a head is
//! turned together with element `i + pairs`.

use std::ops::Range;

use crate::error::KernelError;
use crate::ragged;
use crate::simd::multiversion;

/// Cosines and sines of the angles, `[positions, pairs]` each.
#[derive(Debug, Clone, Copy)]
pub struct Rotary<'a> {
    cosine: &'a [f32],
    sine: &'a [f32],
    pairs: usize,
}

/// Which columns of a buffer `[tokens, stride]` are turned: `heads` heads of `head_size` elements,
/// one after another from column `first` on.
#[derive(Debug, Clone, Copy)]
pub struct HeadColumns {
    /// The length of a token's row.
    pub stride: usize,
    /// The first head's first column.
    pub first: usize,
    /// The number of heads.
    pub heads: usize,
    /// The number of elements of a head; those after twice the pairs stay as they are.
    pub head_size: usize,
}

impl<'a> Rotary<'a> {
    /// Tables for heads of which `2 * pairs` elements are turned.
    ///
    /// # Panics
    /// When the tables are not whole rows or differ in length.
    pub fn new(cosine: &'a [f32], sine: &'a [f32], pairs: usize) -> Self {
        assert!(
            pairs > 0 && cosine.len() == sine.len() && cosine.len().is_multiple_of(pairs),
            "{} cosines and {} sines of {pairs} pairs",
            cosine.len(),
            sine.len()
        );
        Self {
            cosine,
            sine,
            pairs,
        }
    }

    /// The number of positions.
    pub fn positions(&self) -> usize {
        self.cosine.len() / self.pairs
    }

    /// Turns the heads of the tokens of a range, in place; `x` is those tokens' rows.
    ///
    /// `offsets` says where each text of the batch begins and, at the end, how many tokens there
    /// are.
    ///
    /// # Errors
    /// [`KernelError::TooLong`] when a text of the batch has more tokens than there are positions.
    ///
    /// # Panics
    /// When the heads do not fit into a row or the pairs into a head, or `x` is not one row for
    /// every token, or the range reaches past the batch.
    pub fn turn(
        &self,
        x: &mut [f32],
        columns: HeadColumns,
        offsets: &[usize],
        tokens: Range<usize>,
    ) -> Result<(), KernelError> {
        let HeadColumns {
            stride,
            first,
            heads,
            head_size,
        } = columns;
        assert!(
            stride > 0
                && head_size >= 2 * self.pairs
                && first + heads * head_size <= stride
                && x.len() == tokens.len() * stride,
            "{heads} heads of {head_size} from {first} on in {} values of {} rows of {stride}, \
             in {} pairs",
            x.len(),
            tokens.len(),
            self.pairs
        );
        ragged::check_lengths(offsets, self.positions())?;
        turn(self, x, columns, offsets, tokens);
        Ok(())
    }
}

multiversion! {
    fn turn(
        tables: &Rotary<'_>,
        x: &mut [f32],
        columns: HeadColumns,
        offsets: &[usize],
        tokens: Range<usize>,
    ) {
        let pairs = tables.pairs;
        let positions = ragged::positions(offsets, tokens);
        for (row, position) in x.chunks_exact_mut(columns.stride).zip(positions) {
            let part = position * pairs..(position + 1) * pairs;
            let (cosine, sine) = (&tables.cosine[part.clone()], &tables.sine[part]);
            let heads = &mut row[columns.first..][..columns.heads * columns.head_size];
            for head in heads.chunks_exact_mut(columns.head_size) {
                let (first, second) = head.split_at_mut(pairs);
                let angles = cosine.iter().zip(sine);
                for ((first, second), (cosine, sine)) in first.iter_mut().zip(second).zip(angles) {
                    let (a, b) = (*first, *second);
                    *first = a * cosine - b * sine;
                    *second = b * cosine + a * sine;
                }
            }
        }
    }
}
