//! One head of one text.
//!
//! The queries of a block stand in the lanes of vector registers, so that everything from the
//! scores to the sum of the exponentials is done for all of them at once and nothing is ever added
//! across lanes. Sums run along the keys in order: how many lanes there are, which differs between
//! machines, has no part in a result. Long sums are made of shorter ones, always cut at the same
//! keys, which keeps rounding errors small.

use std::ops::Range;

use super::relative::{Block, Packed, Relative};
use super::scratch::Scratch;
use super::tile::{Portable, Tile};
use super::transpose::Rows;
use crate::Arithmetic;
use crate::columns::Columns;
use crate::math::exp_of_negative;
use crate::reduce::larger;

/// Keys whose weighted values are added before they join the sum.
const VALUES_CHUNK: usize = 256;
/// Keys whose weights are added before they join the sum.
const WEIGHTS_CHUNK: usize = 16;

/// A head's columns and a text's tokens.
pub(super) struct Head<'a> {
    pub(super) queries: Columns<'a>,
    pub(super) keys: Columns<'a>,
    pub(super) values: Columns<'a>,
    pub(super) tokens: Range<usize>,
    /// How many of the tokens, from the first, are keys.
    pub(super) seen: usize,
    pub(super) scale: f32,
    /// For every offset within the text, the most negative first.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) relative: Option<Relative<'a>>,
    pub(super) reach: Option<usize>,
    pub(super) causal: bool,
}

impl Head<'_> {
    /// Calls `write` with every query's number and the elements of its result.
    pub(super) fn run(&self, arithmetic: Arithmetic, scratch: &mut Scratch, write: &mut Write<'_>) {
        dispatch(self, arithmetic == Arithmetic::Fast, scratch, write);
    }

    /// `M` keys or columns of values at a time, against `N` queries.
    #[inline(always)]
    fn compute<const M: usize, const N: usize>(
        &self,
        tile: impl Tile<M, N>,
        scratch: &mut Scratch,
        write: &mut Write<'_>,
    ) {
        let count = self.tokens.len();
        let size = self.queries.width();
        let tiles = count.div_ceil(M);
        let panels = size.div_ceil(M);
        // Further than the text is long is as far as there is.
        let before = self.reach.map_or(count, |reach| reach.min(count));
        let after = if self.causal { 0 } else { before };
        let bias_length = self.bias.map_or(0, |bias| bias.len() + N);
        let relative = self.relative.as_ref();
        let [of_queries, of_keys, terms] =
            relative.map_or([0; 3], |relative| relative.lengths::<M, N>(size));
        let [
            keys,
            values,
            queries,
            scores,
            out,
            results,
            bias,
            of_queries,
            of_keys,
            terms,
        ] = scratch.parts([
            tiles * size * M,
            panels * count * M,
            size * N,
            tiles * M * N,
            panels * M * N,
            N * size,
            bias_length,
            of_queries,
            of_keys,
            terms,
        ]);
        let mut packed = Packed {
            queries: of_queries,
            keys: of_keys,
            terms,
        };
        if let Some(relative) = relative {
            relative.pack::<M, N>(&mut packed);
        }
        self.pack_keys(tile, keys);
        self.pack_values::<M>(values);
        if let Some(offsets) = self.bias {
            // Backwards, so that neighbouring queries find their biases side by side; what is read
            // for the lanes past the last query only has to be there.
            let (backwards, rest) = bias.split_at_mut(offsets.len());
            for (to, from) in backwards.iter_mut().zip(offsets.iter().rev()) {
                *to = *from;
            }
            rest.fill(0.0);
        }
        for first in (0..count).step_by(N) {
            let last = (first + N).min(count) - 1;
            let end = (last + after + 1).min(self.seen);
            let seen = first.saturating_sub(before).min(end)..end;
            let block = self.rows(&self.queries, first..last + 1);
            tile.transpose(&block, self.scale, N, queries);
            for number in seen.start / M..seen.end.div_ceil(M) {
                let keys = &keys[number * size * M..(number + 1) * size * M];
                let sums = tile.multiply(keys, queries);
                let to = &mut scores[number * M * N..(number + 1) * M * N];
                to.copy_from_slice(sums.as_flattened());
            }
            let (rows, _) = scores.as_chunks_mut::<N>();
            if let Some(relative) = relative {
                let block = Block {
                    packed: queries,
                    first,
                    count: last - first + 1,
                };
                relative.add(tile, &mut packed, &block, (keys, seen.clone()), rows);
            }
            if self.bias.is_some() {
                for key in seen.clone() {
                    let bias = &bias[count - 1 - key + first..][..N];
                    for (score, bias) in rows[key].iter_mut().zip(bias) {
                        *score += bias;
                    }
                }
            }
            if before < count || self.causal {
                hide(rows, seen.clone(), first, (before, after));
            }
            let sum = [weights(rows, seen.clone()); M];
            for panel in 0..panels {
                let values = &values[panel * count * M..(panel + 1) * count * M];
                let mut total = [[0.0; N]; M];
                for part in parts(seen.clone(), VALUES_CHUNK) {
                    let weights = rows[part.clone()].as_flattened();
                    let sums = tile.multiply(&values[part.start * M..part.end * M], weights);
                    // Flat, here and below: of rows, LLVM takes the same element of each into a register.
                    let total = total.as_flattened_mut().iter_mut();
                    for (total, sum) in total.zip(sums.as_flattened()) {
                        *total += sum;
                    }
                }
                let total = total.as_flattened().iter();
                let out = out[panel * M * N..].iter_mut();
                for ((total, to), sum) in total.zip(out).zip(sum.as_flattened()) {
                    *to = total / sum;
                }
            }
            let columns = Rows {
                values: out,
                stride: N,
                count: size,
                width: last - first + 1,
            };
            tile.transpose(&columns, 1.0, size, results);
            for (lane, row) in results.chunks_exact(size).take(columns.width).enumerate() {
                write(first + lane, row);
            }
        }
    }

    /// Some of the text's tokens.
    fn rows<'c>(&self, columns: &Columns<'c>, tokens: Range<usize>) -> Rows<'c> {
        let start = self.tokens.start;
        let count = tokens.len();
        let (values, stride) = columns.rows_of(start + tokens.start..start + tokens.end);
        Rows {
            values,
            stride,
            count,
            width: columns.width(),
        }
    }

    /// `[tile][size][M]`, zeros after the last key.
    #[inline(always)]
    fn pack_keys<const M: usize, const N: usize>(&self, tile: impl Tile<M, N>, to: &mut [f32]) {
        let size = self.keys.width();
        for (number, to) in to.chunks_exact_mut(size * M).enumerate() {
            let first = number * M;
            let rows = self.rows(&self.keys, first..self.tokens.len().min(first + M));
            tile.transpose(&rows, 1.0, M, to);
        }
    }

    /// `[panel][key][M]`, zeros after the last column.
    #[inline(always)]
    fn pack_values<const M: usize>(&self, to: &mut [f32]) {
        let count = self.tokens.len();
        for (number, token) in self.tokens.clone().enumerate() {
            let (whole, rest) = self.values.row(token).as_chunks::<M>();
            for (panel, from) in whole.iter().enumerate() {
                let to = &mut to[(panel * count + number) * M..][..M];
                to.copy_from_slice(from);
            }
            if !rest.is_empty() {
                let to = &mut to[(whole.len() * count + number) * M..][..M];
                to.fill(0.0);
                to[..rest.len()].copy_from_slice(rest);
            }
        }
    }
}

/// Minus infinity where a key is too far before the query, or too far after it.
#[inline(always)]
fn hide<const N: usize>(
    rows: &mut [[f32; N]],
    seen: Range<usize>,
    first: usize,
    (before, after): (usize, usize),
) {
    for key in seen {
        // Most keys are seen by every query of the block.
        if key + before < first + N - 1 || key > first + after {
            for (lane, score) in rows[key].iter_mut().enumerate() {
                let query = first + lane;
                if key + before < query || key > query + after {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }
}

/// Replaces scores by their exponentials, the largest of a query's being 1, and adds them up.
#[inline(always)]
fn weights<const N: usize>(rows: &mut [[f32; N]], seen: Range<usize>) -> [f32; N] {
    let mut max = [f32::NEG_INFINITY; N];
    for row in &rows[seen.clone()] {
        for (max, score) in max.iter_mut().zip(row) {
            *max = larger(*max, *score);
        }
    }
    let mut total = [0.0; N];
    for part in parts(seen, WEIGHTS_CHUNK) {
        let mut sum = [0.0; N];
        for row in &mut rows[part] {
            for ((score, max), sum) in row.iter_mut().zip(&max).zip(&mut sum) {
                *score = exp_of_negative(*score - max);
                *sum += *score;
            }
        }
        for (total, sum) in total.iter_mut().zip(&sum) {
            *total += sum;
        }
    }
    total
}

/// A range of keys, cut at the multiples of `length`.
#[inline(always)]
fn parts(keys: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let numbers = keys.start / length..keys.end.div_ceil(length);
    numbers
        .map(move |number| (number * length).max(keys.start)..((number + 1) * length).min(keys.end))
}

/// Takes a query's number and the elements of its result.
type Write<'w> = dyn FnMut(usize, &[f32]) + 'w;

/// Runs the version for this machine.
#[cfg(target_arch = "x86_64")]
fn dispatch(head: &Head<'_>, fast: bool, scratch: &mut Scratch, write: &mut Write<'_>) {
    use super::tile::x86::{Avx2, Avx512};

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
    fn avx512<const N: usize, T: Tile<8, N>>(
        head: &Head<'_>,
        tile: T,
        scratch: &mut Scratch,
        write: &mut Write<'_>,
    ) {
        head.compute(tile, scratch, write);
    }
    #[target_feature(enable = "avx2,fma")]
    fn avx2<T: Tile<4, 16>>(
        head: &Head<'_>,
        tile: T,
        scratch: &mut Scratch,
        write: &mut Write<'_>,
    ) {
        head.compute(tile, scratch, write);
    }
    fn widest<const FUSED: bool>(head: &Head<'_>, scratch: &mut Scratch, write: &mut Write<'_>) {
        if let Some(tile) = Avx512::<FUSED>::new() {
            return match head.tokens.len() {
                // SAFETY: there is such a tile only where the processor has the features.
                0..=16 => unsafe { avx512::<16, _>(head, tile, scratch, write) },
                // Two registers of queries share what is read of keys and values.
                // SAFETY: as above.
                _ => unsafe { avx512::<32, _>(head, tile, scratch, write) },
            };
        }
        if let Some(tile) = Avx2::<FUSED>::new() {
            // SAFETY: there is such a tile only where the processor has the features.
            return unsafe { avx2(head, tile, scratch, write) };
        }
        head.compute::<4, 8>(Portable, scratch, write);
    }
    if fast {
        widest::<true>(head, scratch, write);
    } else {
        widest::<false>(head, scratch, write);
    }
}

/// Runs the version for this target.
#[cfg(not(target_arch = "x86_64"))]
fn dispatch(head: &Head<'_>, fast: bool, scratch: &mut Scratch, write: &mut Write<'_>) {
    /// A function for each tile: with both in one, V8 ran them at two thirds of the speed.
    #[inline(never)]
    fn version<T: Tile<4, 8>>(
        head: &Head<'_>,
        tile: T,
        scratch: &mut Scratch,
        write: &mut Write<'_>,
    ) {
        head.compute(tile, scratch, write);
    }
    if fast {
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        return version(head, super::tile::Relaxed, scratch, write);
        #[cfg(target_arch = "aarch64")]
        return version(head, super::tile::Fused, scratch, write);
    }
    version(head, Portable, scratch, write);
}
