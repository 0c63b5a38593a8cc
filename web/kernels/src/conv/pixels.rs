//! Work on maps that looks at one pixel, or at one channel, at a time.

use crate::simd::multiversion;

/// Pixels that are turned together, so that both sides stay in the cache.
const BLOCK: usize = 32;

/// `[channels, pixels]` to `[pixels, channels]`: a planar picture to pixels, some of them, from `first` on.
///
/// # Panics
/// If `out` is not whole pixels of `channels` values, or there are no such pixels in `planes`.
pub fn to_pixels(planes: &[f32], channels: usize, first: usize, out: &mut [f32]) {
    assert!(
        channels > 0 && planes.len().is_multiple_of(channels),
        "{} values in {channels} planes",
        planes.len()
    );
    let (all, count) = (planes.len() / channels, out.len() / channels);
    assert!(
        out.len().is_multiple_of(channels) && first + count <= all,
        "{count} pixels from {first} on of {all}"
    );
    for start in (0..count).step_by(BLOCK) {
        let end = count.min(start + BLOCK);
        for channel in 0..channels {
            let plane = &planes[channel * all + first..][start..end];
            for (value, pixel) in plane.iter().zip(start..) {
                out[pixel * channels + channel] = *value;
            }
        }
    }
}

/// `[pixels, channels]` to `[channels, pixels]`.
///
/// # Panics
/// If `x` is not whole pixels of `channels` values, or `out` has another length.
pub fn to_planes(x: &[f32], channels: usize, out: &mut [f32]) {
    assert!(
        channels > 0 && x.len().is_multiple_of(channels) && out.len() == x.len(),
        "{} values of {channels} channels to {}",
        x.len(),
        out.len()
    );
    let count = x.len() / channels;
    for start in (0..count).step_by(BLOCK) {
        let end = count.min(start + BLOCK);
        for channel in 0..channels {
            for pixel in start..end {
                out[channel * count + pixel] = x[pixel * channels + channel];
            }
        }
    }
}

multiversion! {
    /// The mean of each channel of `[height, width, channels]`. The pixels of a row are added in order, then the rows.
    ///
    /// # Panics
    /// If `x` is not whole rows of `width` pixels of as many channels as `out` has.
    pub fn mean_of_pixels(x: &[f32], width: usize, out: &mut [f32]) {
        let channels = out.len();
        assert!(channels > 0 && width > 0 && x.len().is_multiple_of(width * channels), "{} values in rows of {width} pixels of {channels}", x.len());
        /// Channels at a time, whose sums stay in registers.
        const LANES: usize = 16;
        let pixels = x.len() / channels;
        let mut first = 0;
        while first < channels {
            let count = LANES.min(channels - first);
            let mut all = [0.0_f32; LANES];
            for row in x.chunks_exact(width * channels) {
                let mut sums = [0.0_f32; LANES];
                for pixel in row.chunks_exact(channels) {
                    if let Some(values) = pixel[first..].first_chunk::<LANES>() {
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum += value;
                        }
                    } else {
                        for (sum, value) in sums.iter_mut().zip(&pixel[first..]) {
                            *sum += value;
                        }
                    }
                }
                for (all, sum) in all.iter_mut().zip(sums) {
                    *all += sum;
                }
            }
            for (out, all) in out[first..][..count].iter_mut().zip(all) {
                *out = all / pixels as f32;
            }
            first += count;
        }
    }
}

multiversion! {
    /// `x * scale` for every pixel, with a number for each channel.
    ///
    /// # Panics
    /// If `x` is not whole pixels.
    pub fn scale_channels(x: &mut [f32], scale: &[f32]) {
        assert!(!scale.is_empty() && x.len().is_multiple_of(scale.len()), "{} values of {} channels", x.len(), scale.len());
        for pixel in x.chunks_exact_mut(scale.len()) {
            for (x, scale) in pixel.iter_mut().zip(scale) {
                *x *= scale;
            }
        }
    }
}

multiversion! {
    /// `x * scale + shift` for every pixel, with two numbers for each channel.
    ///
    /// # Panics
    /// If `x` is not whole pixels, or there are not as many shifts as scales.
    pub fn scale_and_shift(x: &mut [f32], scale: &[f32], shift: &[f32]) {
        assert!(!scale.is_empty() && x.len().is_multiple_of(scale.len()) && shift.len() == scale.len(), "{} values, {} scales, {} shifts", x.len(), scale.len(), shift.len());
        for pixel in x.chunks_exact_mut(scale.len()) {
            for ((x, scale), shift) in pixel.iter_mut().zip(scale).zip(shift) {
                *x = *x * scale + shift;
            }
        }
    }
}

multiversion! {
    /// `x + y`, element by element.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(x: &mut [f32], y: &[f32]) {
        assert_eq!(x.len(), y.len());
        for (x, y) in x.iter_mut().zip(y) {
            *x += y;
        }
    }
}

multiversion! {
    /// Values below `least` become `least`, values above `most` become `most`. NaN stays NaN.
    pub fn limit(x: &mut [f32], least: f32, most: f32) {
        for x in x {
            let above = if *x < least { least } else { *x };
            *x = if above > most { most } else { above };
        }
    }
}
