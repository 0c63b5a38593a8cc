//! Single operations on pixels, for programs that have their own way to a model's input.
//!
//! Each takes an [`OptLevel`], which says how much of the machine it uses. The bytes are the same at every level.
//! [`OptLevel::threads`] and [`detect_features`] say what a level is on this machine. In WebAssembly every level has one
//! thread, and [`InstructionSet::Simd128`] where the module was compiled for it.
//!
//! ```
//! use isovec_image::ops::{self, OptLevel};
//! use isovec_image::{Channels, Filter, Image, Weights, Window};
//!
//! # fn main() -> isovec_image::Result<()> {
//! let photo = Image::new(40, 30, Channels::Rgb, vec![200; 40 * 30 * 3])?;
//! let level = OptLevel::Simd;
//! let part = ops::crop(photo.view(), Window { x: 5, y: 0, width: 30, height: 30 })?;
//! let small = ops::resize(part.view(), 10, 10, Filter::Bicubic, Weights::Pillow, level)?;
//! let gray = ops::grayscale(small.view(), level)?;
//! let white = ops::threshold(gray.view(), 127, level)?;
//! assert_eq!(white.data(), [255; 100]);
//! let values = ops::normalise(small.view(), 1.0 / 255.0, [0.5; 3], [0.5; 3], level)?;
//! assert_eq!(values.data.len(), 3 * 10 * 10);
//! println!("{} on {} thread", ops::detect_features(), level.threads());
//! # Ok(()) }
//! ```

pub use isovec_pixels::{InstructionSet, OptLevel, detect_features};

use isovec_pixels::{Scale, Tone};

use crate::resize::resize_at;
use crate::{Channels, Filter, Image, ImageError, ImageView, PixelValues, Result, Weights, Window};

/// As [`crate::resize`]. [`Filter::Nearest`] multiplies nothing, and is the same work at every level.
///
/// # Errors
/// As [`crate::resize`].
pub fn resize(
    from: ImageView<'_>,
    width: usize,
    height: usize,
    filter: Filter,
    weights: Weights,
    level: OptLevel,
) -> Result<Image> {
    let whole = Window::whole(width, height);
    resize_at(level, from, width, height, whole, filter, weights)
}

/// A copy of a rectangle. [`ImageView::subview`] is the same without a copy.
///
/// # Errors
/// [`ImageError::Size`] where it is empty or reaches beyond the picture.
pub fn crop(from: ImageView<'_>, window: Window) -> Result<Image> {
    let part = from.subview(window.x, window.y, window.width, window.height)?;
    Ok(part.to_image())
}

/// The brightness of colors: `(red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16`, which is ITU-R Recommendation
/// 601 as Pillow's `convert("L")` rounds it. Alpha is dropped.
///
/// # Errors
/// [`ImageError::WrongChannels`] where the picture has no colors.
pub fn grayscale(from: ImageView<'_>, level: OptLevel) -> Result<Image> {
    if !matches!(from.channels(), Channels::Rgb | Channels::Rgba) {
        return Err(ImageError::WrongChannels {
            has: from.channels(),
            wanted: Channels::Rgb,
            hint: "its first channel is its brightness already",
        });
    }
    let mut data = vec![0; from.width() * from.height()];
    isovec_pixels::grayscale(from.pixels()?, &mut data, level)?;
    Image::new(from.width(), from.height(), Channels::Gray, data)
}

/// 255 for each byte above a limit and 0 for all others, in every channel, alpha too.
///
/// # Errors
/// None for a picture that there is.
pub fn threshold(from: ImageView<'_>, limit: u8, level: OptLevel) -> Result<Image> {
    let mut data = vec![0; from.width() * from.height() * from.channels().count()];
    isovec_pixels::threshold(from.pixels()?, limit, &mut data, level)?;
    Image::new(from.width(), from.height(), from.channels(), data)
}

/// `(byte * scale - mean) / deviation` for each color, channel by channel. The product is rounded from double to single
/// precision and the rest is computed in single precision, as transformers' processors do it with numpy.
///
/// # Errors
/// [`ImageError::WrongChannels`] where the picture is not RGB; [`ImageError::Config`] where a deviation is 0 or a number is
/// not finite.
pub fn normalise(
    from: ImageView<'_>,
    scale: f64,
    mean: [f64; 3],
    deviation: [f64; 3],
    level: OptLevel,
) -> Result<PixelValues> {
    if from.channels() != Channels::Rgb {
        return Err(ImageError::WrongChannels {
            has: from.channels(),
            wanted: Channels::Rgb,
            hint: "convert it with `to_rgb` first",
        });
    }
    let tones = [0, 1, 2].map(|channel| Tone {
        scale: Scale::Double(scale),
        offset: 0.0,
        normal: Some((mean[channel] as f32, deviation[channel] as f32)),
        divisor: None,
    });
    let mut single = tones.iter().filter_map(|tone| tone.normal);
    let fine = |(mean, deviation): (f32, f32)| {
        mean.is_finite() && deviation.is_finite() && deviation != 0.0
    };
    if !scale.is_finite() || !single.all(fine) {
        return Err(ImageError::Config(format!(
            "scale {scale}, mean {mean:?} and deviation {deviation:?} must be finite, and no deviation 0"
        )));
    }
    let plane = from.width() * from.height();
    let mut data = vec![0.0; 3 * plane];
    let (red, rest) = data.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    isovec_pixels::normalise(from.pixels()?, &tones, [red, green, blue], level)?;
    Ok(PixelValues {
        channels: 3,
        height: from.height(),
        width: from.width(),
        data,
    })
}
