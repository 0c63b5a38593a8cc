//! Resizing with given weights: first along the width, then along the height, each pass ending in bytes.
//!
//! Blocks of rows go along the width into a ring that holds as many as a new row is made of. From there they go along the
//! height into the result. So what lies between the passes stays in the processor's cache, however large a picture is.

mod across;
mod down;
mod pack;
#[cfg(test)]
mod tests;

use crate::taps::{Groups, Taps};
use crate::{InstructionSet, OptLevel, PixelsError, Result, Rows, threads};
use across::Across;
use down::Down;

/// The weights of both passes.
struct Plan<'a> {
    from: Rows<'a>,
    columns: Option<(&'a Taps, Groups)>,
    rows: Option<(&'a Taps, Groups)>,
    set: InstructionSet,
}

/// Resizes a picture. Without weights for its columns it keeps its width, and without those for its rows its height.
///
/// The result is `to`: as many rows as there are new ones, each with as many pixels as there are new columns.
///
/// # Errors
/// [`PixelsError::Taps`] where weights reach beyond the picture; [`PixelsError::Size`] where `to` has another length.
pub fn resize(
    from: Rows<'_>,
    columns: Option<&Taps>,
    rows: Option<&Taps>,
    to: &mut [u8],
    level: OptLevel,
) -> Result<()> {
    let old = from.width() * from.channels() * from.height();
    let threads = level.threads_for(old.saturating_add(to.len()));
    resize_with(from, columns, rows, to, (level.instructions(), threads))
}

/// As [`resize`], with a set of instructions that is here, on so many threads.
pub(crate) fn resize_with(
    from: Rows<'_>,
    columns: Option<&Taps>,
    rows: Option<&Taps>,
    to: &mut [u8],
    (set, threads): (InstructionSet, usize),
) -> Result<()> {
    let new = |taps: Option<&Taps>, old: usize, what: &str| match taps {
        Some(taps) if taps.reach().1 > old => Err(PixelsError::Taps(format!(
            "weights reach to {what} {} of {old}",
            taps.reach().1
        ))),
        Some(taps) => Ok(taps.len()),
        None => Ok(old),
    };
    let width = new(columns, from.width(), "column")?;
    let height = new(rows, from.height(), "row")?;
    let row = width.checked_mul(from.channels());
    if row.and_then(|row| row.checked_mul(height)) != Some(to.len()) {
        return Err(PixelsError::Size(format!(
            "{width} x {height} new pixels with {} bytes do not fill {} bytes",
            from.channels(),
            to.len()
        )));
    }
    if to.is_empty() {
        return Ok(());
    }
    // A quad for every old pixel costs packing; quads side by side cost multiplying, as spans seldom begin with one. Where
    // the picture grows, there is less to pack than to multiply.
    let step = if width > from.width() { 1 } else { 4 };
    let plan = Plan {
        from,
        columns: columns.map(|taps| {
            (
                taps,
                Groups::new(taps, 4, step, set == InstructionSet::Avx512),
            )
        }),
        rows: rows.map(|taps| (taps, Groups::new(taps, 2, 1, false))),
        set,
    };
    let row = width * from.channels();
    threads::split(threads, to, row, |first, part| {
        plan.run(first, part, row);
    });
    Ok(())
}

impl Plan<'_> {
    /// Makes the new rows from number `first` on, of `row` bytes each.
    fn run(&self, first: usize, to: &mut [u8], row: usize) {
        let columns = self.columns.as_ref();
        let mut across =
            columns.map(|(taps, groups)| Across::new(self.set, self.from, taps, groups));
        let Some((taps, groups)) = &self.rows else {
            self.along_the_width(across, first, to, row);
            return;
        };
        let count = to.len() / row;
        let spans = &taps.spans()[first..first + count];
        let height = across.as_ref().map_or(1, Across::rows_at_once);
        let longest = spans.iter().map(|span| span.count).max().unwrap_or(0);
        let mut ring = Ring::new(row, longest, height, spans[0].start);
        let mut down = Down::new(self.set, taps, groups);
        for ((y, span), to) in (first..).zip(spans).zip(to.chunks_exact_mut(row)) {
            ring.skip(span.start);
            while ring.end < span.end() {
                let (y, stride) = (ring.end, ring.stride);
                let rows = height.min(self.from.height() - y);
                let block = ring.next_block();
                match &mut across {
                    Some(across) => across.run(y, rows, block, stride),
                    None => block[..row].copy_from_slice(self.from.row(y)),
                }
            }
            down.run(y, &ring, to);
        }
    }

    /// The same where the height stays.
    fn along_the_width(&self, across: Option<Across<'_>>, first: usize, to: &mut [u8], row: usize) {
        let Some(mut across) = across else {
            for (y, to) in (first..).zip(to.chunks_exact_mut(row)) {
                to.copy_from_slice(self.from.row(y));
            }
            return;
        };
        let height = across.rows_at_once();
        let mut ring = Ring::new(row, 0, height, first);
        let stride = ring.stride;
        for to in to.chunks_mut(height * row) {
            let (y, rows) = (ring.end, to.len() / row);
            let block = ring.next_block();
            across.run(y, rows, block, stride);
            for (to, from) in to.chunks_exact_mut(row).zip(block.chunks_exact(stride)) {
                to.copy_from_slice(&from[..row]);
            }
        }
    }
}

/// The rows between the passes, in blocks: the last ones that were made.
struct Ring {
    data: Vec<u8>,
    /// Bytes from one row to the next: at least [`Ring::ROOM`] more than a row has.
    stride: usize,
    /// Rows of a block.
    height: usize,
    /// Rows of all blocks.
    slots: usize,
    /// The first row that was ever asked for.
    top: usize,
    /// The row behind the last block, which is whole blocks from `top`.
    end: usize,
}

impl Ring {
    /// What registers may read and write behind a row.
    const ROOM: usize = 64;

    /// For rows of `row` bytes of which `longest` are read together, made in blocks of `height`, from row `top` on.
    fn new(row: usize, longest: usize, height: usize, top: usize) -> Self {
        let slots = (longest.div_ceil(height) + 1) * height;
        let stride = row.next_multiple_of(Self::ROOM) + Self::ROOM;
        Self {
            data: vec![0; slots * stride],
            stride,
            height,
            slots,
            top,
            end: top,
        }
    }

    /// Leaves blocks out that lie before row `y` and are not made yet.
    fn skip(&mut self, y: usize) {
        let blocks = (y - self.top) / self.height;
        self.end = self.end.max(self.top + blocks * self.height);
    }

    /// The place of the next block, which takes that of the oldest.
    fn next_block(&mut self) -> &mut [u8] {
        let slot = (self.end - self.top) % self.slots;
        self.end += self.height;
        &mut self.data[slot * self.stride..][..self.height * self.stride]
    }

    /// A row that was made and is still there.
    fn row(&self, y: usize) -> &[u8] {
        let slot = (y - self.top) % self.slots;
        &self.data[slot * self.stride..][..self.stride]
    }
}
