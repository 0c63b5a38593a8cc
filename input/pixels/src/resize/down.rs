//! The pass along the height: bytes of two rows at a time, column by column.

use super::Ring;
use crate::InstructionSet;
use crate::simd::{Point, Simd, Total, dispatch};
use crate::taps::{Groups, Taps};

/// The pass of one picture, on one thread.
pub(super) struct Down<'a> {
    set: InstructionSet,
    taps: &'a Taps,
    groups: &'a Groups,
    /// The old rows of each pair of a new row.
    rows: Vec<[*const u8; 2]>,
    /// The sums of a row, where there are no registers.
    sums: Vec<i32>,
}

impl<'a> Down<'a> {
    pub(super) fn new(set: InstructionSet, taps: &'a Taps, groups: &'a Groups) -> Self {
        Self {
            set,
            taps,
            groups,
            rows: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Makes new row `y`, whose old rows are in the ring.
    pub(super) fn run(&mut self, y: usize, ring: &Ring, to: &mut [u8]) {
        let span = self.taps.spans()[y];
        let old = (span.start..span.end()).map(|y| ring.row(y));
        if self.set == InstructionSet::Scalar {
            let weights = self.taps.weights(&span);
            scalar(old.zip(weights), self.taps.point(), &mut self.sums, to);
            return;
        }
        let run = self.groups.runs[y];
        self.rows.clear();
        for pair in 0..run.groups {
            let first = run.start + 2 * pair;
            // Behind the last row is a weight of 0.
            let second = (first + 1).min(span.end() - 1);
            self.rows
                .push([first, second].map(|y| ring.row(y).as_ptr()));
        }
        let job = Columns {
            rows: &self.rows,
            words: &self.groups.words[run.words..],
            point: self.taps.point(),
            len: to.len(),
            to: to.as_mut_ptr(),
        };
        let set = self.set;
        // SAFETY: the set is here. Rows of the ring have `Ring::ROOM` bytes more than `to`; there are words for every pair.
        let done = unsafe {
            match self.taps.wide() {
                true => dispatch!(set, columns::<true>(job: Columns<'_>)),
                false => dispatch!(set, columns::<false>(job: Columns<'_>)),
            }
        };
        debug_assert!(done, "{set} has no code");
    }
}

/// What makes a new row.
struct Columns<'a> {
    rows: &'a [[*const u8; 2]],
    words: &'a [i16],
    point: Point,
    len: usize,
    to: *mut u8,
}

/// # Safety
/// To be inlined into a function compiled for the instructions of `S`, which the processor has. The rows are valid for reads
/// of `len` bytes, rounded up to a multiple of `4 * LANES`; `words` has 4 (2 without `WIDE`) for each pair of rows; `to` is
/// valid for writes of `len` bytes.
#[inline(always)]
unsafe fn columns<S: Simd, const WIDE: bool>(on: Columns<'_>) {
    let step = 4 * S::LANES;
    let parts = if WIDE { 4 } else { 2 };
    // SAFETY: the caller's promise; what would go behind the row goes to `rest` first.
    unsafe {
        for at in (0..on.len).step_by(step) {
            let mut sums = [Total::<S>::zero(); 4];
            let mut words = on.words.as_ptr();
            for &[a, b] in on.rows {
                let low = S::splat_pair(words);
                let high = if WIDE {
                    S::splat_pair(words.add(2))
                } else {
                    low
                };
                let pixels = S::zip_rows(a.add(at), b.add(at));
                for (sums, pixels) in sums.iter_mut().zip(pixels) {
                    sums.low = S::add_dot(sums.low, pixels, low);
                    if WIDE {
                        sums.high = S::add_dot(sums.high, pixels, high);
                    }
                }
                words = words.add(parts);
            }
            let to = on.to.add(at);
            let left = on.len - at;
            if left >= step {
                S::store_columns(to, sums, on.point);
            } else {
                let mut rest = [0u8; Ring::ROOM];
                S::store_columns(rest.as_mut_ptr(), sums, on.point);
                to.copy_from_nonoverlapping(rest.as_ptr(), left);
            }
        }
    }
}

/// The reference.
fn scalar<'a>(
    old: impl Iterator<Item = (&'a [u8], &'a i32)>,
    point: Point,
    sums: &mut Vec<i32>,
    to: &mut [u8],
) {
    sums.clear();
    sums.resize(to.len(), point.half());
    for (row, &weight) in old {
        for (sum, &byte) in sums.iter_mut().zip(row) {
            *sum += i32::from(byte) * weight;
        }
    }
    for (to, &sum) in to.iter_mut().zip(&*sums) {
        *to = point.byte(sum);
    }
}
