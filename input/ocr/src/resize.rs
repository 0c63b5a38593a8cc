//! OpenCV's bilinear resizing of bytes (`INTER_LINEAR`), without antialiasing.
//!
//! Weights have 11 bits. A row is resized to whole numbers of 19 bits. Two of them are added up with weights of 11 bits, of which
//! each product loses its last bits before the sum: 4 before the product, 16 behind it. Where both sides are halved exactly,
//! OpenCV takes the mean of four pixels instead.

use isovec_image::{Channels, Image, ImageView};

use crate::Result;

/// 1 in the fixed point of weights.
const ONE: f32 = 2048.0;

/// Where a result reads one axis of its source.
struct Tap {
    /// The first of two neighbours, and the second.
    at: [usize; 2],
    /// Their weights.
    weights: [i32; 2],
}

/// Makes an RGB picture of `width` by `height` pixels of another.
///
/// # Errors
/// [`ImageError::Size`](isovec_image::ImageError::Size) where a side is 0.
pub(crate) fn resize(from: ImageView<'_>, width: usize, height: usize) -> Result<Image> {
    if (from.width(), from.height()) == (width, height) {
        return Ok(from.to_image());
    }
    let count = from.channels().count();
    let mut data = vec![0; width * height * count];
    if (from.width(), from.height()) == (2 * width, 2 * height) {
        halve(from, &mut data);
    } else if width > 0 && height > 0 {
        let columns = taps(from.width(), width, true);
        let rows = taps(from.height(), height, false);
        stretch(from, &columns, &rows, &mut data);
    }
    Ok(Image::new(width, height, from.channels(), data)?)
}

fn halve(from: ImageView<'_>, data: &mut [u8]) {
    let count = from.channels().count();
    for (y, row) in data.chunks_exact_mut(from.width() / 2 * count).enumerate() {
        let (above, below) = (from.row(2 * y), from.row(2 * y + 1));
        for (at, byte) in row.iter_mut().enumerate() {
            let left = at / count * 2 * count + at % count;
            let sum = [
                above[left],
                above[left + count],
                below[left],
                below[left + count],
            ];
            // The mean of four bytes is a byte.
            *byte = ((sum.map(u32::from).iter().sum::<u32>() + 2) >> 2) as u8;
        }
    }
}

fn stretch(from: ImageView<'_>, columns: &[Tap], rows: &[Tap], data: &mut [u8]) {
    let count = from.channels().count();
    let width = columns.len() * count;
    let mut lines = [vec![0; width], vec![0; width]];
    let mut held = [usize::MAX; 2];
    for (tap, row) in rows.iter().zip(data.chunks_exact_mut(width)) {
        if held[1] == tap.at[0] {
            lines.swap(0, 1);
            held.swap(0, 1);
        }
        for side in 0..2 {
            if held[side] != tap.at[side] {
                across(from.row(tap.at[side]), columns, count, &mut lines[side]);
                held[side] = tap.at[side];
            }
        }
        let [first, second] = tap.weights;
        for ((byte, &one), &other) in row.iter_mut().zip(&lines[0]).zip(&lines[1]) {
            let sum = ((first * (one >> 4)) >> 16) + ((second * (other >> 4)) >> 16);
            *byte = ((sum + 2) >> 2).clamp(0, 255) as u8;
        }
    }
}

/// A row of the source at the width of the result, in 19 bits.
fn across(row: &[u8], columns: &[Tap], count: usize, line: &mut [i32]) {
    for (tap, pixel) in columns.iter().zip(line.chunks_exact_mut(count)) {
        let [first, second] = tap.at.map(|at| &row[at * count..][..count]);
        for ((value, &one), &other) in pixel.iter_mut().zip(first).zip(second) {
            *value = i32::from(one) * tap.weights[0] + i32::from(other) * tap.weights[1];
        }
    }
}

/// `is_row` says that a tap beyond an edge has all its weight at the edge; else both neighbours are the edge.
fn taps(from: usize, to: usize, is_row: bool) -> Vec<Tap> {
    let scale = 1.0 / (to as f64 / from as f64);
    let last = from as i64 - 1;
    let tap = |at: usize| {
        let place = ((at as f64 + 0.5) * scale - 0.5) as f32;
        let mut first = place.floor() as i64;
        let mut fraction = place - first as f32;
        if is_row && (first < 0 || first >= last) {
            (first, fraction) = (first.clamp(0, last), 0.0);
        }
        let weight = |share: f32| (share * ONE).round_ties_even() as i32;
        Tap {
            // Within 0 and `last`, which are.
            at: [first, first + 1].map(|at| at.clamp(0, last) as usize),
            weights: [weight(1.0 - fraction), weight(fraction)],
        }
    };
    (0..to).map(tap).collect()
}

/// The pixels as planes of blue, green and red, each byte as `values` says: rows of `width`, filled up with `fill`.
pub(crate) fn planes(image: &Image, values: &[f32; 256], width: usize, fill: f32) -> Vec<f32> {
    debug_assert_eq!(image.channels(), Channels::Rgb);
    let plane = width * image.height();
    let mut data = vec![fill; 3 * plane];
    for (y, row) in image.view().rows().enumerate() {
        let (pixels, _) = row.as_chunks::<3>();
        for (x, pixel) in pixels.iter().enumerate() {
            for (channel, &byte) in pixel.iter().rev().enumerate() {
                data[channel * plane + y * width + x] = values[usize::from(byte)];
            }
        }
    }
    data
}
