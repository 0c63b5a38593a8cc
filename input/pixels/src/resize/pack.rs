//! Quads of old pixels beside each other, of many rows: what the pass along the width multiplies.

use crate::simd::Simd;

/// The most rows of a block, which is that of gray in registers of 512 bits.
pub(super) const MOST_ROWS: usize = 64;

/// Old pixels of a block of rows.
pub(super) struct Source {
    /// The rows; of those that there are not, the last one.
    pub(super) rows: [*const u8; MOST_ROWS],
    /// Bytes of a row.
    pub(super) row: usize,
    /// The first pixel.
    pub(super) start: usize,
    /// Pixels from the first of a quad to the first of the next.
    pub(super) step: usize,
    /// Quads from there.
    pub(super) quads: usize,
}

/// Registers of sums for `C` channels: a block has `LANES * registers / C` rows.
pub(super) const fn registers(channels: usize) -> usize {
    match channels {
        3 => 3,
        _ => 4,
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Where the bytes of a quad go: those of a channel together.
const fn table(channels: usize) -> [u8; 16] {
    let mut table = [128; 16];
    let mut at = 0;
    while at < 4 * channels {
        table[at] = (at % 4 * channels + at / 4) as u8;
        at += 1;
    }
    table
}

/// Writes, for one quad of pixels after the other, for one row after the other, the four pixels' bytes of the first channel,
/// of the second channel, and so on. A pixel behind the row is 0.
///
/// # Safety
/// To be inlined into a function compiled for the instructions of `S`, which the processor has. The rows are valid for reads
/// of `row` bytes; `to` is valid for writes of `quads * 4 * LANES * registers(C)` bytes.
#[inline(always)]
pub(super) unsafe fn pack<S: Simd, const C: usize>(source: &Source, to: *mut u8) {
    let rows = S::LANES * registers(C) / C;
    let (first, step) = (source.start * C, source.step * C);
    // What is read for a quad: a whole register, but for gray.
    let read = if C == 1 { 4 } else { 16 };
    // Quads that are read within the row.
    let inside = match source.row.checked_sub(first + read) {
        Some(room) => (room / step + 1).min(source.quads),
        None => 0,
    };
    // SAFETY: what is read is within its row as counted, and what is written within what the caller promises.
    unsafe {
        let table = S::load_bytes(const { table(C) }.as_ptr());
        // A cache line of each row after the other: rows that are a power of two apart have one place in the cache.
        let many = LINE.div_ceil(step);
        let mut quad = 0;
        if C == 1 {
            quad = gray::<S>(source, rows, to);
        }
        while quad < inside {
            let end = (quad + many).min(inside);
            for (number, &row) in source.rows[..rows].iter().enumerate() {
                let mut from = row.add(first + quad * step);
                let mut to = to.add((quad * rows + number) * 4 * C);
                for _ in quad..end {
                    if C == 1 {
                        to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read());
                    } else {
                        let bytes = S::shuffle(S::load_bytes(from), table);
                        if C < 4 && number == rows - 1 {
                            // Behind it is the next quad's first row, which was written before.
                            let mut whole = [0u8; 16];
                            S::store_bytes(whole.as_mut_ptr(), bytes);
                            to.copy_from_nonoverlapping(whole.as_ptr(), 4 * C);
                        } else {
                            // Behind it is the next row, which is written later.
                            S::store_bytes(to, bytes);
                        }
                    }
                    // Behind the last quad there may be less than that.
                    from = from.wrapping_add(step);
                    to = to.wrapping_add(rows * 4 * C);
                }
            }
            quad = end;
        }
        while quad < source.quads {
            for (number, &row) in source.rows[..rows].iter().enumerate() {
                let to = to.add((quad * rows + number) * 4 * C);
                for byte in 0..4 * C {
                    let at = first + quad * step + byte;
                    let value = if at < source.row { *row.add(at) } else { 0 };
                    *to.add(byte % C * 4 + byte / C) = value;
                }
            }
            quad += 1;
        }
    }
}

/// Packs gray quads, four of four rows at a time, as long as 16 bytes can be read; gives how many.
///
/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn gray<S: Simd>(source: &Source, rows: usize, to: *mut u8) -> usize {
    // Quads that overlap are made of their bytes first.
    const OVERLAPPING: [u8; 16] = [0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6];
    let (first, step) = (source.start, source.step);
    let inside = match source.row.checked_sub(first + 16) {
        Some(room) => (room / (4 * step) + 1).min(source.quads / 4) * 4,
        None => 0,
    };
    // SAFETY: what is read is within its row as counted, and what is written within what the caller promises.
    unsafe {
        let table = S::load_bytes(OVERLAPPING.as_ptr());
        let many = LINE / step;
        for line in (0..inside).step_by(many) {
            for row in (0..rows).step_by(4) {
                for quad in (line..inside.min(line + many)).step_by(4) {
                    let mut four = [table; 4];
                    for (bytes, row) in four.iter_mut().zip(&source.rows[row..]) {
                        *bytes = S::load_bytes(row.add(first + quad * step));
                        if step == 1 {
                            *bytes = S::shuffle(*bytes, table);
                        }
                    }
                    let [a, b, c, d] = four;
                    let ([a, b], [c, d]) = (S::zip_dwords(a, c), S::zip_dwords(b, d));
                    let ([a, b], [c, d]) = (S::zip_dwords(a, c), S::zip_dwords(b, d));
                    let to = to.add((quad * rows + row) * 4);
                    S::store_bytes(to, a);
                    S::store_bytes(to.add(4 * rows), b);
                    S::store_bytes(to.add(8 * rows), c);
                    S::store_bytes(to.add(12 * rows), d);
                }
            }
        }
    }
    inside
}
