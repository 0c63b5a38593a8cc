//! DINOv3's order of steps: bytes are scaled first and resized as numbers, so that nothing is rounded to bytes between.
//!
//! It is torch's `interpolate(mode="bilinear", antialias=True, align_corners=False)`: a triangle of as many pixels as become
//! one, along the width and then along the height. Sums are at f64 and rounded to f32 after each.

use std::ops::Range;

use super::MOST;
use crate::{ImageError, ImageView, Result};

/// The three channels of a picture one after the other, `[3, height, width]`, as numbers between bytes.
///
/// # Errors
/// [`ImageError::TooManyPixels`] where the picture would have more than 100 million after the first step.
pub(super) fn resized(image: ImageView<'_>, height: usize, width: usize) -> Result<Vec<f32>> {
    let high = image.height();
    if high as u64 * width as u64 > MOST {
        return Err(ImageError::TooManyPixels {
            width: width as u64,
            height: high as u64,
            limit: MOST,
        });
    }
    let mut narrow = vec![0.0; 3 * high * width];
    for (x, place) in Place::all(image.width(), width).enumerate() {
        for (y, row) in image.rows().enumerate() {
            let (pixels, _) = row.as_chunks::<3>();
            for channel in 0..3 {
                let mean = place.mean(|at| f64::from(pixels[at][channel]));
                narrow[(channel * high + y) * width + x] = mean;
            }
        }
    }
    let mut values = Vec::with_capacity(3 * height * width);
    for plane in narrow.chunks_exact(high * width) {
        for place in Place::all(high, height) {
            let mean = |x: usize| place.mean(|at| f64::from(plane[at * width + x]));
            values.extend((0..width).map(mean));
        }
    }
    Ok(values)
}

/// Where a new pixel lies among those along an axis, and how far it reaches.
struct Place {
    centre: f64,
    reach: f64,
    seen: Range<usize>,
}

impl Place {
    /// Those of `to` pixels that are made of `from`.
    fn all(from: usize, to: usize) -> impl Iterator<Item = Self> {
        let scale = from as f64 / to as f64;
        let reach = scale.max(1.0);
        (0..to).map(move |place| {
            let centre = (place as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(from);
            Self {
                centre,
                reach,
                seen: first..end,
            }
        })
    }

    /// The mean of the values along the axis, each weighed by how near it is.
    fn mean(&self, value: impl Fn(usize) -> f64) -> f32 {
        let (mut sum, mut total) = (0.0, 0.0);
        for at in self.seen.clone() {
            let apart = (at as f64 + 0.5 - self.centre).abs();
            let share = (1.0 - apart / self.reach).max(0.0);
            sum += share * value(at);
            total += share;
        }
        (sum / total) as f32
    }
}
