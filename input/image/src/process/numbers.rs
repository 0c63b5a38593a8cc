//! DINOv3's order of steps: bytes are scaled first and resized as numbers, so that nothing is rounded to bytes between.
//!
//! It is torch's `interpolate(mode="bilinear", antialias=True, align_corners=False)`: a triangle of as many pixels as become
//! one, along the width and then along the height. Sums are at f64 and rounded to f32 after each.

use super::MOST;
use crate::{ImageError, ImageView, Result};

/// The three channels of a picture one after the other, `[3, height, width]`, its bytes as numbers.
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
    let (across, down) = (shares(image.width(), width), shares(high, height));
    let mut narrow = vec![0.0; 3 * high * width];
    for (y, row) in image.rows().enumerate() {
        let (pixels, _) = row.as_chunks::<3>();
        for (x, (first, shares)) in across.iter().enumerate() {
            for channel in 0..3 {
                let seen = shares.iter().zip(&pixels[*first..]);
                let sum: f64 = seen.map(|(share, p)| share * f64::from(p[channel])).sum();
                narrow[(channel * high + y) * width + x] = sum as f32;
            }
        }
    }
    let mut values = Vec::with_capacity(3 * height * width);
    for plane in narrow.chunks_exact(high * width) {
        for (first, shares) in &down {
            let seen = &plane[first * width..];
            values.extend((0..width).map(|x| {
                let column = seen[x..].iter().step_by(width);
                let sum: f64 = shares
                    .iter()
                    .zip(column)
                    .map(|(share, v)| share * f64::from(*v))
                    .sum();
                sum as f32
            }));
        }
    }
    Ok(values)
}

/// For each of `to` places along an axis: the first of `from` places that it is made of, and the shares from there on.
fn shares(from: usize, to: usize) -> Vec<(usize, Vec<f64>)> {
    let scale = from as f64 / to as f64;
    let support = scale.max(1.0);
    let place = |place: usize| {
        let centre = (place as f64 + 0.5) * scale;
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(from);
        let share = |at: usize| (1.0 - ((at as f64 + 0.5 - centre) / support).abs()).max(0.0);
        let shares: Vec<f64> = (first..end).map(share).collect();
        let total: f64 = shares.iter().sum();
        (first, shares.iter().map(|share| share / total).collect())
    };
    (0..to).map(place).collect()
}
