//! What each new pixel is made of: which old ones, and how much of each.

use isovec_pixels::Taps;

use super::Filter;
use crate::{ImageError, Result};

/// The number of bits that Pillow has behind the point: what 32 bits leave beside a byte and two bits of room.
const PILLOW_BITS: u32 = 32 - 8 - 2;

/// Pillow's weights, for the new pixels `at..at + length` of `to`.
///
/// # Errors
/// [`ImageError::Pixels`] where sums could overflow, which no filter's do.
pub(super) fn pillow(
    from: usize,
    to: usize,
    at: usize,
    length: usize,
    filter: Filter,
) -> Result<Taps> {
    Kernel::new(from, to, filter).taps(at, length, PILLOW_BITS)
}

/// Torchvision's. The point depends on the largest weight of all new pixels, so those outside the window count too.
///
/// # Errors
/// [`ImageError::Config`] for a filter that torchvision does not have for bytes; [`ImageError::Pixels`] as [`pillow`].
pub(super) fn torchvision(
    from: usize,
    to: usize,
    at: usize,
    length: usize,
    filter: Filter,
) -> Result<Taps> {
    if !matches!(filter, Filter::Bilinear | Filter::Bicubic) {
        return Err(ImageError::Config(format!(
            "torchvision does not resize bytes with the filter {filter:?}; take Pillow's weights"
        )));
    }
    let kernel = Kernel::new(from, to, filter);
    let mut weights = vec![0.0; kernel.longest];
    let mut largest = 0f64;
    for new in 0..to {
        let (_, count) = kernel.weights(new, &mut weights);
        largest = weights[..count].iter().copied().fold(largest, f64::max);
    }
    let fits = |bits: u32| fixed(largest, bits + 1) < 1 << 15;
    let bits = (0..PILLOW_BITS).find(|&bits| !fits(bits));
    kernel.taps(at, length, bits.unwrap_or(PILLOW_BITS))
}

/// A filter on its way from one length to another.
struct Kernel {
    filter: Filter,
    from: usize,
    /// Old pixels of a new one.
    scale: f64,
    /// Old pixels that the filter reaches to each side.
    support: f64,
    /// The filter's unit of an old pixel.
    unit: f64,
    /// The most old pixels of a new one.
    longest: usize,
}

impl Kernel {
    fn new(from: usize, to: usize, filter: Filter) -> Self {
        let scale = from as f64 / to as f64;
        // Where the picture shrinks, the filter grows with it: that is the antialiasing.
        let stretch = scale.max(1.0);
        let support = filter.support() * stretch;
        Self {
            filter,
            from,
            scale,
            support,
            unit: 1.0 / stretch,
            longest: support.ceil() as usize * 2 + 1,
        }
    }

    /// The weights of the new pixels `at..at + length`, with so many bits behind the point.
    fn taps(&self, at: usize, length: usize, bits: u32) -> Result<Taps> {
        let mut real = vec![0.0; self.longest];
        let mut whole = vec![0; self.longest];
        let mut taps = Taps::new(bits)?;
        for new in at..at + length {
            let (start, count) = self.weights(new, &mut real);
            for (to, &weight) in whole.iter_mut().zip(&real[..count]) {
                *to = fixed(weight, bits);
            }
            taps.push(start, &whole[..count])?;
        }
        Ok(taps)
    }

    /// Writes the weights of a new pixel, which add up to 1; gives its first old pixel, and how many there are.
    fn weights(&self, new: usize, to: &mut [f64]) -> (usize, usize) {
        let center = (new as f64 + 0.5) * self.scale;
        // Half up by truncation: what is below 0 ends at 0.
        let start = (center - self.support + 0.5).max(0.0) as usize;
        let end = ((center + self.support + 0.5) as usize).min(self.from);
        let weights = &mut to[..end - start];
        let mut sum = 0.0;
        for (old, weight) in (start..).zip(weights.iter_mut()) {
            *weight = self.filter.weight((old as f64 - center + 0.5) * self.unit);
            sum += *weight;
        }
        if sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        (start, weights.len())
    }
}

/// A weight with so many bits behind the point: the nearest, a half away from 0.
fn fixed(weight: f64, bits: u32) -> i32 {
    (weight * f64::from(1u32 << bits) + 0.5f64.copysign(weight)) as i32
}
