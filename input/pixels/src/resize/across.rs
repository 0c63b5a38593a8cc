//! The pass along the width.
//!
//! A block of rows is packed so that what four weights multiply lies together (`pack.rs`): for each quad of old pixels, each
//! register of rows and channels then is multiplied by those weights, whatever the channels are. A block is packed part by
//! part, so that a part stays in the cache while all new pixels that it makes are computed.

use std::ops::Range;

use super::pack::{Source, pack, registers};
use crate::simd::{Point, Simd, dispatch};
use crate::taps::{Groups, Run, Taps};
use crate::{InstructionSet, Rows};

/// Bytes of a part, more or less.
const PART: usize = 1 << 15;

/// The pass of one picture, on one thread.
pub(super) struct Across<'a> {
    set: InstructionSet,
    from: Rows<'a>,
    taps: &'a Taps,
    groups: &'a Groups,
    /// Rows of a block.
    rows: usize,
    /// New pixels that are made of one part, and the part's quads: the first, and how many there are.
    parts: Vec<(Range<usize>, usize, usize)>,
    packed: Vec<u8>,
}

/// Sums of 32 bits in a register.
fn lanes(set: InstructionSet) -> usize {
    match set {
        InstructionSet::Avx512 => 16,
        InstructionSet::Avx2 => 8,
        InstructionSet::Neon | InstructionSet::Simd128 => 4,
        InstructionSet::Scalar => 2,
    }
}

impl<'a> Across<'a> {
    pub(super) fn new(
        set: InstructionSet,
        from: Rows<'a>,
        taps: &'a Taps,
        groups: &'a Groups,
    ) -> Self {
        let channels = from.channels();
        let quad = 4 * lanes(set) * registers(channels);
        // Quads from the first of a run to the one behind its last.
        let step = groups.step;
        let end = |run: &Run| {
            let last = run.start + 4 * run.groups.saturating_sub(1);
            last / step + 1
        };
        let mut parts: Vec<(Range<usize>, usize, usize)> = Vec::new();
        for (new, run) in groups.runs.iter().enumerate() {
            let (start, end) = (run.start / step, end(run));
            match parts.last_mut() {
                Some((all, first, quads)) if end - *first <= PART / quad => {
                    all.end = new + 1;
                    *quads = (*quads).max(end - *first);
                }
                _ => parts.push((new..new + 1, start, end - start)),
            }
        }
        let longest = parts.iter().map(|(.., quads)| *quads).max().unwrap_or(0);
        Self {
            set,
            from,
            taps,
            groups,
            rows: lanes(set) * registers(channels) / channels,
            parts,
            packed: vec![0; longest * quad],
        }
    }

    /// Rows of a block.
    pub(super) fn rows_at_once(&self) -> usize {
        self.rows
    }

    /// Makes `rows` rows from row `y` on, which is at most a block; `to` has a whole block, its rows `stride` bytes apart,
    /// of which at least 4 are behind a row.
    pub(super) fn run(&mut self, y: usize, rows: usize, to: &mut [u8], stride: usize) {
        let channels = self.from.channels();
        let row = self.taps.len() * channels;
        assert!(
            rows > 0 && rows <= self.rows && row + 4 <= stride && self.rows * stride <= to.len()
        );
        if self.set == InstructionSet::Scalar {
            for (y, to) in (y..y + rows).zip(to.chunks_exact_mut(stride)) {
                let from = self.from.row(y);
                match channels {
                    1 => scalar::<1>(from, &mut to[..row], self.taps),
                    2 => scalar::<2>(from, &mut to[..row], self.taps),
                    3 => scalar::<3>(from, &mut to[..row], self.taps),
                    _ => scalar::<4>(from, &mut to[..row], self.taps),
                }
            }
            return;
        }
        let mut source = Source {
            rows: std::array::from_fn(|at| self.from.row(y + at.min(rows - 1)).as_ptr()),
            row: self.from.width() * channels,
            start: 0,
            step: self.groups.step,
            quads: 0,
        };
        let set = self.set;
        for (new, start, quads) in &self.parts {
            (source.start, source.quads) = (*start * self.groups.step, *quads);
            let job = Part {
                source: &source,
                runs: &self.groups.runs[new.clone()],
                words: &self.groups.words,
                point: self.taps.point(),
                packed: self.packed.as_mut_ptr(),
                rows,
                stride,
                to: to[new.start * channels..].as_mut_ptr(),
            };
            macro_rules! part {
                ($channels:literal, $wide:literal) => {
                    // SAFETY: the set is here. `packed` has room for the longest part, and `to` has `rows` rows of all new
                    // pixels with 4 bytes behind each.
                    unsafe { dispatch!(set, part::<$channels, $wide>(job: Part<'_>)) }
                };
            }
            let done = match (channels, self.taps.wide()) {
                (1, false) => part!(1, false),
                (1, true) => part!(1, true),
                (2, false) => part!(2, false),
                (2, true) => part!(2, true),
                (3, false) => part!(3, false),
                (3, true) => part!(3, true),
                (_, false) => part!(4, false),
                (_, true) => part!(4, true),
            };
            debug_assert!(done, "{set} has no code");
        }
    }
}

/// What makes some new pixels of a block.
struct Part<'a> {
    source: &'a Source,
    runs: &'a [Run],
    words: &'a [i16],
    point: Point,
    packed: *mut u8,
    /// New rows that are written.
    rows: usize,
    /// Bytes from a new row to the next.
    stride: usize,
    /// The first of the new pixels, in the first row.
    to: *mut u8,
}

/// Packs the part and makes its new pixels.
///
/// # Safety
/// To be inlined into a function compiled for the instructions of `S`, which the processor has. `packed` is valid as for
/// [`pack`], the runs are within the source's quads, their words within `words`; `to` is valid for writes of `rows` rows of
/// as many pixels as there are runs and 4 bytes, where what lies behind a row's pixels may be written to.
#[inline(always)]
unsafe fn part<S: Simd, const C: usize, const WIDE: bool>(part: Part<'_>) {
    let registers = const { registers(C) };
    let parts = match (WIDE, S::BYTES) {
        (true, true) => 6,
        (true, false) => 8,
        (false, _) => 4,
    };
    let quad = 4 * S::LANES * registers;
    let next = 4 / part.source.step * quad;
    // SAFETY: the caller's promise.
    unsafe {
        pack::<S, C>(part.source, part.packed);
        for (number, run) in part.runs.iter().enumerate() {
            let mut sums = [S::no_quads(); 4];
            let first = (run.start - part.source.start) / part.source.step;
            let mut old = part.packed.add(first * quad);
            let mut words = part.words.as_ptr().add(run.words);
            for _ in 0..run.groups {
                for (register, sums) in sums[..registers].iter_mut().enumerate() {
                    *sums = S::add_quads::<WIDE>(*sums, old.add(4 * S::LANES * register), words);
                }
                // Behind the last quad there may be less than that.
                old = old.wrapping_add(next);
                words = words.add(parts);
            }
            let [a, b, c, d] = sums;
            let sums = [S::total(a), S::total(b), S::total(c), S::total(d)];
            let mut bytes = [0u8; MOST_BYTES];
            S::store_lanes(bytes.as_mut_ptr(), sums, part.point);
            let to = part.to.add(number * C);
            for row in 0..part.rows {
                // Three bytes go as four: the fourth is the next pixel's, which is written later, or behind the row.
                let from = bytes.as_ptr().add(row * C);
                let to = to.add(row * part.stride);
                match C {
                    1 => *to = *from,
                    2 => to.cast::<[u8; 2]>().write(from.cast::<[u8; 2]>().read()),
                    _ => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
                }
            }
        }
    }
}

/// Bytes of the sums of a new pixel in a block's rows, and 4 more.
const MOST_BYTES: usize = 64 + 4;

/// The reference.
fn scalar<const C: usize>(from: &[u8], to: &mut [u8], taps: &Taps) {
    let (from, _) = from.as_chunks::<C>();
    let (to, _) = to.as_chunks_mut::<C>();
    let point = taps.point();
    for (to, span) in to.iter_mut().zip(taps.spans()) {
        let mut sums = [point.half(); C];
        for (pixel, &weight) in from[span.start..].iter().zip(taps.weights(span)) {
            for (sum, &byte) in sums.iter_mut().zip(pixel) {
                *sum += i32::from(byte) * weight;
            }
        }
        *to = sums.map(|sum| point.byte(sum));
    }
}
