//! Convolutions of each channel by itself.

use std::ops::Range;

use super::windows::Windows;
use crate::Arithmetic;
use crate::gemm::simd::{Scalar, Simd};

/// Registers of channels at a time.
const V: usize = 2;

/// A depthwise convolution.
#[derive(Debug, Clone, Copy)]
pub struct Depthwise<'a> {
    /// Where its kernel looks.
    pub windows: Windows,
    /// `[taps, channels]`.
    pub weights: &'a [f32],
    /// A number for each channel, where every sum begins.
    pub bias: &'a [f32],
    /// The least and the most that a sum may become. NaN stays NaN.
    pub limits: Option<(f32, f32)>,
}

/// Computes some rows of the result, `[rows, columns, channels]`. Every sum begins with the bias; the taps that lie inside the
/// map are added in order, row by row.
///
/// # Panics
/// If `x` is no such map, there are no such rows, or the weights, the bias or `out` have other lengths.
pub fn depthwise(
    of: &Depthwise<'_>,
    arithmetic: Arithmetic,
    x: &[f32],
    rows: Range<usize>,
    out: &mut [f32],
) {
    let Windows {
        map,
        window,
        places,
    } = of.windows;
    assert!(
        x.len() == map.len()
            && rows.end <= places[0]
            && out.len() == rows.len() * places[1] * map.channels
            && of.weights.len() == window.taps() * map.channels
            && of.bias.len() == map.channels,
        "rows {rows:?} of {places:?} of {map:?} with {} values, to {}; {} weights, a bias of {}",
        x.len(),
        out.len(),
        of.weights.len(),
        of.bias.len()
    );
    if out.is_empty() {
        return;
    }
    let whole = window.whole(1, places[1], map.width);
    let select = select(arithmetic, map.channels);
    for (row, out) in rows.zip(out.chunks_exact_mut(places[1] * map.channels)) {
        let row = Row {
            of,
            whole: whole.clone(),
            x: x.as_ptr(),
            out: out.as_mut_ptr(),
            row,
            taps: window.inside(0, row, map.height),
        };
        // SAFETY: the lengths were checked above, and the processor has the instructions.
        unsafe { select(&row) }
    }
}

/// One row of the result.
struct Row<'a> {
    of: &'a Depthwise<'a>,
    x: *const f32,
    out: *mut f32,
    row: usize,
    /// Columns of the result for which all columns of taps lie inside the map.
    whole: Range<usize>,
    /// The rows of taps that lie inside the map.
    taps: Range<usize>,
}

/// Computes a row.
///
/// # Safety
///
/// The processor has the function's instructions; the lengths are those that [`depthwise`] checks.
type Compute = unsafe fn(&Row<'_>);

/// The function for this machine and so many channels.
fn select(arithmetic: Arithmetic, channels: usize) -> Compute {
    let fused = arithmetic == Arithmetic::Fast;
    #[cfg(target_arch = "x86_64")]
    {
        use crate::gemm::simd::{Avx2, Avx512};
        use crate::simd::{Level, level};

        /// # Safety
        ///
        /// As for [`Compute`].
        #[target_feature(enable = "avx512f")]
        unsafe fn avx512<const FUSED: bool>(row: &Row<'_>) {
            // SAFETY: the caller's promise.
            unsafe { compute::<Avx512, FUSED, 6>(row) }
        }
        /// # Safety
        ///
        /// As for [`Compute`].
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<const FUSED: bool>(row: &Row<'_>) {
            // SAFETY: the caller's promise.
            unsafe { compute::<Avx2, FUSED, 4>(row) }
        }
        if level() >= Level::Avx512 && channels >= Avx512::LANES {
            return if fused {
                avx512::<true>
            } else {
                avx512::<false>
            };
        }
        if level() >= Level::Avx2 && channels >= Avx2::LANES {
            return if fused { avx2::<true> } else { avx2::<false> };
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        use crate::gemm::simd::Neon;
        if channels >= Neon::LANES {
            return if fused {
                compute::<Neon, true, 6>
            } else {
                compute::<Neon, false, 6>
            };
        }
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    {
        use crate::gemm::simd::Wasm;
        if channels >= Wasm::LANES {
            return if fused {
                compute::<Wasm, true, 4>
            } else {
                compute::<Wasm, false, 4>
            };
        }
    }
    let _ = (fused, channels);
    compute::<Scalar, false, 4>
}

/// Computes a row, T pixels at a time where all columns of taps lie inside the map.
///
/// # Safety
///
/// As for [`Compute`]; there are at least `LANES` channels.
#[inline(always)]
unsafe fn compute<S: Simd, const FUSED: bool, const T: usize>(row: &Row<'_>) {
    let Windows {
        map,
        window,
        places,
    } = row.of.windows;
    let mut column = 0;
    while column < places[1] {
        let whole = match row.whole.contains(&column) {
            true => row.whole.end - column,
            false => 0,
        };
        let taps = match whole {
            0 => window.inside(1, column, map.width),
            _ => 0..window.kernel[1],
        };
        // SAFETY: the caller's promise; the taps lie inside the map.
        column += unsafe {
            if whole >= T {
                channels::<S, FUSED, T>(row, column, taps)
            } else if whole >= 2 {
                channels::<S, FUSED, 2>(row, column, taps)
            } else {
                channels::<S, FUSED, 1>(row, column, taps)
            }
        };
    }
}

/// All channels of T pixels; tells how many pixels that were.
///
/// # Safety
///
/// As for [`compute`]; the taps lie inside the map for all of the pixels.
#[inline(always)]
unsafe fn channels<S: Simd, const FUSED: bool, const T: usize>(
    row: &Row<'_>,
    column: usize,
    taps: Range<usize>,
) -> usize {
    let channels = row.of.windows.map.channels;
    let mut channel = 0;
    // SAFETY: the caller's promise; every block of channels ends within the channels.
    unsafe {
        while channel + V * S::LANES <= channels {
            tile::<S, FUSED, T, V>(row, column, channel, &taps);
            channel += V * S::LANES;
        }
        while channel + S::LANES <= channels {
            tile::<S, FUSED, T, 1>(row, column, channel, &taps);
            channel += S::LANES;
        }
        if channel < channels {
            // The last register's channels; some of them for the second time, with the same result.
            tile::<S, FUSED, T, 1>(row, column, channels - S::LANES, &taps);
        }
    }
    T
}

/// T pixels of N registers of channels.
///
/// # Safety
///
/// As for [`channels`]; there are so many channels from `channel` on.
#[inline(always)]
unsafe fn tile<S: Simd, const FUSED: bool, const T: usize, const N: usize>(
    row: &Row<'_>,
    column: usize,
    channel: usize,
    taps: &Range<usize>,
) {
    let Windows { map, window, .. } = row.of.windows;
    let step = window.stride[1] * map.channels;
    // SAFETY: every place is that of a tap inside the map, or of a channel of the result.
    unsafe {
        let mut sums = [[S::zero(); N]; T];
        for (n, lane) in (0..N).map(|n| (n, n * S::LANES)) {
            let bias = S::load(row.of.bias.as_ptr().add(channel + lane));
            for sums in &mut sums {
                sums[n] = bias;
            }
        }
        for tap_row in row.taps.clone() {
            let y = window.at(0, row.row, tap_row);
            for tap in taps.clone() {
                let pixel = y * map.width + window.at(1, column, tap);
                let x = row.x.add(pixel * map.channels + channel);
                let tap = tap_row * window.kernel[1] + tap;
                let weights = row.of.weights.as_ptr().add(tap * map.channels + channel);
                for (n, lane) in (0..N).map(|n| (n, n * S::LANES)) {
                    let weight = S::load(weights.add(lane));
                    for (t, sums) in sums.iter_mut().enumerate() {
                        let x = S::load(x.add(t * step + lane));
                        sums[n] = S::add_product::<FUSED>(sums[n], weight, x);
                    }
                }
            }
        }
        if let Some((least, most)) = &row.of.limits {
            let (least, most) = (S::splat(least), S::splat(most));
            for sum in sums.as_flattened_mut() {
                *sum = S::limit(*sum, least, most);
            }
        }
        for (t, sums) in sums.iter().enumerate() {
            let out = row.out.add((column + t) * map.channels + channel);
            for (n, sum) in sums.iter().enumerate() {
                S::store(out.add(n * S::LANES), *sum);
            }
        }
    }
}
