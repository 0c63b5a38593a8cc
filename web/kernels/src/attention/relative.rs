//! Terms of scores by a token's content and its distance from the other token.

use std::ops::Range;

use super::tile::Tile;

/// A head's vectors of distances, for one text.
pub(super) struct Relative<'a> {
    /// `[size, columns]`, which the queries meet.
    pub(super) queries: Option<&'a [f32]>,
    /// `[size, columns]`, which the keys meet.
    pub(super) keys: Option<&'a [f32]>,
    pub(super) columns: usize,
    /// The column of every offset within the text, of the other token from the one that is multiplied, the most negative first.
    pub(super) by_offset: &'a [u32],
}

/// What is ready before the first block of queries, and room for each block.
pub(super) struct Packed<'a> {
    /// `[panel][size][M]`, for queries.
    pub(super) queries: &'a mut [f32],
    /// `[panel][size][N]`, for keys.
    pub(super) keys: &'a mut [f32],
    pub(super) terms: &'a mut [f32],
}

/// The queries of a block.
pub(super) struct Block<'a> {
    /// `[size][N]`, scaled.
    pub(super) packed: &'a [f32],
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Relative<'_> {
    /// The columns that some offsets have, and any between them.
    fn window(&self, offsets: Range<usize>) -> Range<usize> {
        let columns = self.by_offset[offsets].iter();
        let ends = columns.fold((u32::MAX, 0), |(least, most), &column| {
            (least.min(column), most.max(column))
        });
        ends.0 as usize..ends.1 as usize + 1
    }

    /// The columns of the text.
    fn all(&self) -> Range<usize> {
        self.window(0..self.by_offset.len())
    }

    /// The lengths of the parts of [`Packed`].
    pub(super) fn lengths<const M: usize, const N: usize>(&self, size: usize) -> [usize; 3] {
        let columns = self.all().len();
        let panels = |lanes: usize| columns.div_ceil(lanes);
        [
            self.queries.map_or(0, |_| panels(M) * size * M),
            self.keys.map_or(0, |_| panels(N) * size * N),
            panels(M).max(panels(N)) * M.max(N) * N,
        ]
    }

    #[inline(always)]
    pub(super) fn pack<const M: usize, const N: usize>(&self, to: &mut Packed<'_>) {
        let window = self.all();
        if let Some(table) = self.queries {
            panels::<M>((table, self.columns), &window, to.queries);
        }
        if let Some(table) = self.keys {
            panels::<N>((table, self.columns), &window, to.keys);
        }
    }

    /// Adds the terms of a block of queries with the keys in `seen`, which are packed by `M`, to their scores.
    #[inline(always)]
    pub(super) fn add<const M: usize, const N: usize>(
        &self,
        tile: impl Tile<M, N>,
        packed: &mut Packed<'_>,
        block: &Block<'_>,
        (keys, seen): (&[f32], Range<usize>),
        rows: &mut [[f32; N]],
    ) {
        let start = self.all().start;
        let panel = block.packed.len() / N * M;
        // Offsets of some keys from any query of the block.
        let middle = self.by_offset.len() / 2;
        let offsets = |keys: &Range<usize>| {
            middle + keys.start + 1 - block.first - block.count..middle + keys.end - block.first
        };
        // The last query's first.
        let columns = |key: usize| self.by_offset[offsets(&(key..key + 1))].iter().rev();
        if self.queries.is_some() && !seen.is_empty() {
            let window = self.window(offsets(&seen));
            for number in (window.start - start) / M..(window.end - start).div_ceil(M) {
                let sums = tile.multiply(&packed.queries[number * panel..][..panel], block.packed);
                packed.terms[number * M * N..][..M * N].copy_from_slice(sums.as_flattened());
            }
            let (terms, _) = packed.terms.as_chunks::<N>();
            for key in seen.clone() {
                let scores = rows[key].iter_mut().zip(columns(key)).enumerate();
                for (lane, (score, &column)) in scores {
                    *score += terms[column as usize - start][lane];
                }
            }
        }
        if self.keys.is_some() {
            // Offsets of the block's queries from some keys.
            let back = |keys: &Range<usize>| {
                middle + block.first + 1 - keys.end..middle + block.first + block.count - keys.start
            };
            let other = panel / M * N;
            for number in seen.start / M..seen.end.div_ceil(M) {
                let own = (number * M).max(seen.start)..((number + 1) * M).min(seen.end);
                let window = self.window(back(&own));
                let first = (window.start - start) / N;
                for (at, number_of) in (first..(window.end - start).div_ceil(N)).enumerate() {
                    let sums = tile.multiply(
                        &keys[number * panel..][..panel],
                        &packed.keys[number_of * other..][..other],
                    );
                    packed.terms[at * M * N..][..M * N].copy_from_slice(sums.as_flattened());
                }
                for key in own {
                    let slot = (key - number * M) * N;
                    let columns = &self.by_offset[back(&(key..key + 1))];
                    for (score, &column) in rows[key].iter_mut().zip(columns) {
                        let at = column as usize - start - first * N;
                        *score += packed.terms[at / N * M * N + slot + at % N];
                    }
                }
            }
        }
    }
}

/// `[panel][size][L]` of some columns of `[size, columns]`, zeros after the last.
#[inline(always)]
fn panels<const L: usize>(
    (table, columns): (&[f32], usize),
    window: &Range<usize>,
    to: &mut [f32],
) {
    let size = table.len() / columns;
    for (number, to) in to.chunks_exact_mut(size * L).enumerate() {
        let first = window.start + number * L;
        let taken = L.min(window.end - first);
        let (to, _) = to.as_chunks_mut::<L>();
        for (to, row) in to.iter_mut().zip(table.chunks_exact(columns)) {
            let (to, rest) = to.split_at_mut(taken);
            to.copy_from_slice(&row[first..first + taken]);
            rest.fill(0.0);
        }
    }
}
