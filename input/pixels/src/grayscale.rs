//! Brightness of colors.

use crate::simd::{Point, Simd, Total, dispatch};
use crate::{InstructionSet, OptLevel, PixelsError, Result, Rows, runs};

/// What red, green and blue count, with 16 bits behind the point: ITU-R Recommendation 601, as Pillow rounds it.
const WEIGHTS: [u32; 3] = [19595, 38470, 7471];

/// The point of the weights. They add up to 1.
const POINT: Point = Point { bits: 16 };

/// Makes one byte of each pixel, `(red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16`, as Pillow's `convert("L")`
/// does. A fourth channel is left out.
///
/// # Errors
/// [`PixelsError::Size`] where pixels have not 3 or 4 channels, or `to` has not one byte for each.
pub fn grayscale(from: Rows<'_>, to: &mut [u8], level: OptLevel) -> Result<()> {
    let set = level.instructions();
    match from.channels() {
        3 => runs::each(from, to, 1, level, |from, to| run::<3>(from, to, set)),
        4 => runs::each(from, to, 1, level, |from, to| run::<4>(from, to, set)),
        channels => Err(PixelsError::Size(format!(
            "colors have 3 or 4 channels, and these pixels have {channels}"
        ))),
    }
}

fn run<const C: usize>(from: &[u8], to: &mut [u8], set: InstructionSet) {
    let mut done = 0;
    let made = &mut done;
    // SAFETY: the set is here.
    unsafe {
        match C {
            3 => dispatch!(set, registers::<3>(from: &[u8], to: &mut [u8], made: &mut usize)),
            _ => dispatch!(set, registers::<4>(from: &[u8], to: &mut [u8], made: &mut usize)),
        }
    };
    let (from, _) = from.as_chunks::<C>();
    for (to, pixel) in to.iter_mut().zip(from).skip(done) {
        let products = pixel
            .iter()
            .zip(WEIGHTS)
            .map(|(&byte, weight)| u32::from(byte) * weight);
        *to = ((products.sum::<u32>() + (1 << 15)) >> 16) as u8;
    }
}

/// The first pixels, as many as whole registers hold. Green counts more than 16 bits with a sign can say, so it is there
/// twice, for a half each.
///
/// # Safety
/// To be inlined into a function compiled for the instructions of `S`, which the processor has.
#[inline(always)]
unsafe fn registers<S: Simd, const C: usize>(from: &[u8], to: &mut [u8], done: &mut usize) {
    const HALF: i16 = (WEIGHTS[1] / 2) as i16;
    const RED: [i16; 2] = [WEIGHTS[0] as i16, HALF];
    const BLUE: [i16; 2] = [HALF, WEIGHTS[2] as i16];
    let step = 4 * S::LANES;
    // 16 bytes are read for four pixels.
    let count = to.len().min(from.len().saturating_sub(16 - 4 * C) / C) / step * step;
    // SAFETY: for each of `count` pixels `C` bytes are in `from`, behind them what is read more, and one byte is in `to`.
    unsafe {
        let first = S::load_bytes(const { table(C, 0) }.as_ptr());
        let second = S::load_bytes(const { table(C, 1) }.as_ptr());
        let (red, blue) = (S::splat_pair(RED.as_ptr()), S::splat_pair(BLUE.as_ptr()));
        for at in (0..count).step_by(step) {
            let mut sums = [Total::<S>::zero(); 4];
            for (part, sums) in sums.iter_mut().enumerate() {
                let from = from.as_ptr().add((at + part * S::LANES) * C);
                let pairs = S::shuffle_pairs(from, 4 * C, first);
                sums.low = S::add_dot(sums.low, pairs, red);
                let pairs = S::shuffle_pairs(from, 4 * C, second);
                sums.low = S::add_dot(sums.low, pairs, blue);
            }
            S::store_lanes(to.as_mut_ptr().add(at), sums, POINT);
        }
    }
    *done = count;
}

/// Channels `first` and `first + 1` of four pixels, as words.
const fn table(channels: usize, first: usize) -> [u8; 16] {
    let mut table = [128; 16];
    let mut at = 0;
    while at < 8 {
        table[2 * at] = (at / 2 * channels + first + at % 2) as u8;
        at += 1;
    }
    table
}
