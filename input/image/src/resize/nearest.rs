//! The nearest neighbor, which has no weights.

use super::{Weights, Window};
use crate::image::bytes_of;
use crate::{Image, ImageView, Result};

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
