//! Pools: one value of each channel for what a window sees.

use std::ops::Range;

use super::windows::Windows;
use crate::reduce::larger;
use crate::simd::multiversion;

/// What an average is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Average {
    /// The number of taps inside the map.
    Inside,
    /// The number of all taps, as if there were zeros around the map.
    All,
}

multiversion! {
    /// The largest value of each channel, for some rows of the result. A NaN that is seen is kept. A window that lies outside
    /// the map altogether gives -infinity.
    ///
    /// # Panics
    /// If `x` is no such map, there are no such rows, or `out` has another length.
    pub fn max_pool(windows: &Windows, x: &[f32], rows: Range<usize>, out: &mut [f32]) {
        each(windows, x, rows, out, f32::NEG_INFINITY, |most, x| {
            if most.is_nan() { most } else if x.is_nan() { x } else { larger(most, x) }
        });
    }
}

multiversion! {
    /// The mean of each channel, for some rows of the result. Taps are added row by row.
    ///
    /// # Panics
    /// If `x` is no such map, there are no such rows, or `out` has another length.
    pub fn average_pool(windows: &Windows, average: Average, x: &[f32], rows: Range<usize>, out: &mut [f32]) {
        each(windows, x, rows.clone(), out, 0.0, |sum, x| sum + x);
        let (window, map) = (&windows.window, &windows.map);
        let pixels = out.chunks_exact_mut(map.channels).enumerate();
        for (number, pixel) in pixels {
            let (row, column) = (rows.start + number / windows.places[1], number % windows.places[1]);
            let count = match average {
                Average::All => window.taps(),
                Average::Inside => {
                    window.inside(0, row, map.height).len() * window.inside(1, column, map.width).len()
                }
            };
            for value in pixel {
                *value /= count as f32;
            }
        }
    }
}

/// Folds what each window sees, channel by channel.
#[inline(always)]
fn each(
    windows: &Windows,
    x: &[f32],
    rows: Range<usize>,
    out: &mut [f32],
    start: f32,
    fold: impl Fn(f32, f32) -> f32,
) {
    let Windows {
        map,
        window,
        places,
    } = windows;
    let channels = map.channels;
    assert!(
        channels > 0
            && x.len() == map.len()
            && rows.end <= places[0]
            && out.len() == rows.len() * places[1] * channels,
        "rows {rows:?} of {places:?} of {map:?} with {} values, to {}",
        x.len(),
        out.len()
    );
    for (number, out) in out.chunks_exact_mut(channels).enumerate() {
        let (row, column) = (rows.start + number / places[1], number % places[1]);
        out.fill(start);
        for tap_row in window.inside(0, row, map.height) {
            for tap_column in window.inside(1, column, map.width) {
                let pixel =
                    window.at(0, row, tap_row) * map.width + window.at(1, column, tap_column);
                let seen = &x[pixel * channels..][..channels];
                for (out, x) in out.iter_mut().zip(seen) {
                    *out = fold(*out, *x);
                }
            }
        }
    }
}
