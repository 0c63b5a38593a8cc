//! Where a kernel looks while it moves over a map.

use std::ops::Range;

/// The extents of a map `[height, width, channels]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Map {
    /// Rows of pixels.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Values of a pixel.
    pub channels: usize,
}

impl Map {
    /// Its number of pixels.
    pub fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Its number of values.
    pub fn len(self) -> usize {
        self.pixels() * self.channels
    }

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A kernel that moves over a map; each pair is of rows and of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Its extents.
    pub kernel: [usize; 2],
    /// Pixels from one place to the next.
    pub stride: [usize; 2],
    /// Pixels from one tap to the next.
    pub dilation: [usize; 2],
    /// Pixels of padding above and to the left of the map. What lies beyond the other two sides follows from the number
    /// of places.
    pub before: [usize; 2],
}

impl Window {
    /// One pixel at a time.
    pub const ONE: Self = Self {
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        before: [0, 0],
    };

    /// The number of taps.
    pub fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// The taps along an axis (0: rows, 1: columns) that lie within `extent`, with the window at `place`.
    pub fn inside(&self, axis: usize, place: usize, extent: usize) -> Range<usize> {
        let (step, start) = (self.dilation[axis], place * self.stride[axis]);
        let before = self.before[axis];
        let first = before.saturating_sub(start).div_ceil(step);
        let last = (extent + before).saturating_sub(start).div_ceil(step);
        let last = last.min(self.kernel[axis]);
        first.min(last)..last
    }

    /// The places along an axis, of so many, at which all taps lie within `extent`.
    pub(crate) fn whole(&self, axis: usize, places: usize, extent: usize) -> Range<usize> {
        let span = (self.kernel[axis] - 1) * self.dilation[axis] + 1;
        let first = self.before[axis].div_ceil(self.stride[axis]);
        let end = (extent + self.before[axis])
            .checked_sub(span)
            .map_or(0, |last| last / self.stride[axis] + 1)
            .min(places);
        first.min(end)..end
    }

    /// The coordinate in the map of a tap that lies [`inside`](Self::inside).
    #[inline(always)]
    pub(crate) fn at(&self, axis: usize, place: usize, tap: usize) -> usize {
        place * self.stride[axis] + tap * self.dilation[axis] - self.before[axis]
    }
}

/// A window over a map, with `places` places of it: rows and columns of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The map.
    pub map: Map,
    /// The window.
    pub window: Window,
    /// Rows and columns of the result.
    pub places: [usize; 2],
}

impl Windows {
    /// Copies what the window sees at each of `pixels` of the result, some channels of it: a row of
    /// `[taps, channels]` for each. Taps that lie outside the map are 0.
    ///
    /// # Panics
    /// If `x` is no such map, there are no such channels or pixels, or `out` has another length.
    pub fn gather(&self, x: &[f32], channels: Range<usize>, pixels: Range<usize>, out: &mut [f32]) {
        let Self {
            map,
            window,
            places,
        } = self;
        let width = window.taps() * channels.len();
        assert!(
            x.len() == map.len()
                && channels.end <= map.channels
                && pixels.end <= places[0] * places[1]
                && out.len() == pixels.len() * width,
            "{pixels:?} of {places:?}, channels {channels:?} of {map:?} with {} values, to {}",
            x.len(),
            out.len()
        );
        if width == 0 {
            return;
        }
        // Taps side by side are pixels side by side.
        let together = channels.len() == map.channels && window.dilation[1] == 1;
        let each = channels.len();
        let row_width = window.kernel[1] * each;
        let whole = window.whole(1, places[1], map.width);
        let (mut row, mut column) = (pixels.start / places[1], pixels.start % places[1]);
        let mut rows = window.inside(0, row, map.height);
        for out in out.chunks_exact_mut(width) {
            if column == places[1] {
                (row, column) = (row + 1, 0);
                rows = window.inside(0, row, map.height);
            }
            let columns = match whole.contains(&column) {
                true => 0..window.kernel[1],
                false => window.inside(1, column, map.width),
            };
            if rows.len() < window.kernel[0] || columns.len() < window.kernel[1] {
                out.fill(0.0);
            }
            for tap in rows.clone() {
                let y = window.at(0, row, tap);
                let out = &mut out[tap * row_width..][..row_width];
                if columns.is_empty() {
                    continue;
                }
                let x_of = |tap: usize| {
                    let column = window.at(1, column, tap);
                    (y * map.width + column) * map.channels + channels.start
                };
                if together {
                    let len = columns.len() * each;
                    let from = x_of(columns.start);
                    copy(&mut out[columns.start * each..][..len], &x[from..][..len]);
                } else {
                    for tap in columns.clone() {
                        let from = x_of(tap);
                        out[tap * each..][..each].copy_from_slice(&x[from..][..each]);
                    }
                }
            }
            column += 1;
        }
    }
}

/// Copies as many values. The rows of a picture's three colours are too short for a call of the system's function.
fn copy(to: &mut [f32], from: &[f32]) {
    fn known<const N: usize>(to: &mut [f32], from: &[f32]) {
        if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
            *to = *from;
        }
    }
    match to.len() {
        3 => known::<3>(to, from),
        6 => known::<6>(to, from),
        9 => known::<9>(to, from),
        12 => known::<12>(to, from),
        15 => known::<15>(to, from),
        21 => known::<21>(to, from),
        _ => to.copy_from_slice(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Taps along an axis as the definition says, one by one.
    fn by_definition(window: &Window, place: usize, extent: usize) -> Vec<usize> {
        let inside = |tap: &usize| {
            let at = (place * window.stride[0] + tap * window.dilation[0]) as i64;
            (0..extent as i64).contains(&(at - window.before[0] as i64))
        };
        (0..window.kernel[0]).filter(inside).collect()
    }

    #[test]
    fn taps_inside_are_those_of_the_definition() {
        for (kernel, stride, dilation, before) in [
            (3, 1, 1, 1),
            (3, 2, 1, 1),
            (2, 2, 1, 0),
            (3, 1, 3, 4),
            (5, 3, 2, 9),
            (1, 2, 1, 0),
        ] {
            let window = Window {
                kernel: [kernel; 2],
                stride: [stride; 2],
                dilation: [dilation; 2],
                before: [before; 2],
            };
            for extent in 1..8 {
                let whole = window.whole(0, 12, extent);
                for place in 0..12 {
                    let inside: Vec<usize> = window.inside(0, place, extent).collect();
                    let exact = by_definition(&window, place, extent);
                    assert_eq!(inside, exact, "{window:?} at {place} of {extent}");
                    assert_eq!(whole.contains(&place), exact.len() == kernel, "{window:?}");
                }
            }
        }
    }
}
