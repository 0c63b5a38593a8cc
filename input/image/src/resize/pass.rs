//! The passes: old bytes times weights, a half added, shifted, ended at 0 and 255.

use super::taps::Taps;
use super::{Weights, Window};
use crate::image::bytes_of;
use crate::{Image, ImageView, Result};

/// Resizes every row.
pub(super) fn along_width(from: ImageView<'_>, taps: &Taps) -> Result<Image> {
    let (width, height, channels) = (taps.len(), from.height(), from.channels());
    let mut data = vec![0; bytes_of(width, height, channels)?];
    for (to, from) in data
        .chunks_exact_mut(width * channels.count())
        .zip(from.rows())
    {
        match channels.count() {
            1 => row::<1>(from, to, taps),
            2 => row::<2>(from, to, taps),
            3 => row::<3>(from, to, taps),
            _ => row::<4>(from, to, taps),
        }
    }
    Image::new(width, height, channels, data)
}

fn row<const CHANNELS: usize>(from: &[u8], to: &mut [u8], taps: &Taps) {
    let (from, _) = from.as_chunks::<CHANNELS>();
    let (to, _) = to.as_chunks_mut::<CHANNELS>();
    let half = 1 << (taps.bits() - 1);
    for (to, (start, weights)) in to.iter_mut().zip(taps.iter()) {
        let mut sums = [half; CHANNELS];
        for (pixel, &weight) in from[start..].iter().zip(weights) {
            for (sum, &byte) in sums.iter_mut().zip(pixel) {
                *sum += i32::from(byte) * weight;
            }
        }
        *to = sums.map(|sum| byte(sum, taps.bits()));
    }
}

/// Resizes every column. `from` begins with row `top` of what the taps count in.
pub(super) fn along_height(from: ImageView<'_>, taps: &Taps, top: usize) -> Result<Image> {
    let (width, height, channels) = (from.width(), taps.len(), from.channels());
    let row = width * channels.count();
    let mut data = vec![0; bytes_of(width, height, channels)?];
    let mut sums = vec![0; row];
    for (to, (start, weights)) in data.chunks_exact_mut(row).zip(taps.iter()) {
        sums.fill(1 << (taps.bits() - 1));
        for (y, &weight) in (start - top..).zip(weights) {
            for (sum, &byte) in sums.iter_mut().zip(from.row(y)) {
                *sum += i32::from(byte) * weight;
            }
        }
        for (to, &sum) in to.iter_mut().zip(&sums) {
            *to = byte(sum, taps.bits());
        }
    }
    Image::new(width, height, channels, data)
}

/// The byte of a sum in fixed point.
fn byte(sum: i32, bits: u32) -> u8 {
    (sum >> bits).clamp(0, 255) as u8
}

/// Each new pixel is the old one that it lies in.
pub(super) fn nearest(
    from: ImageView<'_>,
    width: usize,
    height: usize,
    window: Window,
    weights: Weights,
) -> Result<Image> {
    let pixel = from.channels().count();
    let columns = places(from.width(), width, window.x, window.width, weights);
    let rows = places(from.height(), height, window.y, window.height, weights);
    let mut data = Vec::with_capacity(bytes_of(window.width, window.height, from.channels())?);
    for y in rows {
        let row = from.row(y);
        for &x in &columns {
            data.extend_from_slice(&row[x * pixel..][..pixel]);
        }
    }
    Image::new(window.width, window.height, from.channels(), data)
}

/// The old pixel of each new one. Pillow adds the scale up, in double precision; torchvision's exact nearest neighbor
/// multiplies in single precision.
fn places(from: usize, to: usize, at: usize, length: usize, weights: Weights) -> Vec<usize> {
    let last = from - 1;
    match weights {
        Weights::Pillow => {
            let scale = from as f64 / to as f64;
            let sums = std::iter::successors(Some(scale * 0.5), |place| Some(place + scale));
            let places = sums.map(|place| (place as usize).min(last));
            places.skip(at).take(length).collect()
        }
        Weights::Torchvision => {
            let scale = from as f32 / to as f32;
            let place = |new: usize| (((new as f32 + 0.5) * scale) as usize).min(last);
            (at..at + length).map(place).collect()
        }
    }
}
