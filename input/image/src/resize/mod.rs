//! Resizing with antialiasing, as Pillow and torchvision do it: first along the width, then along the height, each pass
//! ending in bytes.
//!
//! The weights of a pass are real numbers that are rounded to a fixed point; sums of products are exact, so every machine
//! has the same bytes. `isovec-pixels` computes them.

mod filter;
mod nearest;
mod taps;

pub use filter::Filter;

use isovec_pixels::OptLevel;

use crate::image::bytes_of;
use crate::{Image, ImageError, ImageView, Result};

/// The fixed point of weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Weights {
    /// 22 bits behind the point, for every filter, as Pillow has them.
    #[default]
    Pillow,
    /// As many of at most 22 bits as let the largest weight fit 16 bits, as torchvision (and Pillow-SIMD) has them for
    /// bytes. [`Filter::Bilinear`] and [`Filter::Bicubic`] only; [`Filter::Nearest`] has no weights.
    Torchvision,
}

/// The longest side of a picture, as it is in Pillow.
const LONGEST: usize = i32::MAX as usize;

/// A rectangle of the picture that a resize makes, in its pixels. The rest is not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Columns left of it.
    pub x: usize,
    /// Rows above it.
    pub y: usize,
    /// Its width.
    pub width: usize,
    /// Its height.
    pub height: usize,
}

impl Window {
    /// All of a picture.
    #[must_use]
    pub fn whole(width: usize, height: usize) -> Self {
        Self {
            x: 0,
            y: 0,
            width,
            height,
        }
    }
}

/// Makes a picture of `width` by `height` pixels of another. Each channel is resized by itself, alpha too: Pillow multiplies
/// colors by alpha before, so drop alpha first where its bytes are wanted.
///
/// # Errors
/// [`ImageError::Size`] where a side is 0 or too long; [`ImageError::Config`] where torchvision has no such filter for bytes.
pub fn resize(
    from: ImageView<'_>,
    width: usize,
    height: usize,
    filter: Filter,
    weights: Weights,
) -> Result<Image> {
    resize_window(
        from,
        width,
        height,
        Window::whole(width, height),
        filter,
        weights,
    )
}

/// A rectangle of what [`resize`] gives, without computing the rest.
///
/// # Errors
/// As [`resize`], and [`ImageError::Size`] where the window reaches beyond `width` by `height`.
pub fn resize_window(
    from: ImageView<'_>,
    width: usize,
    height: usize,
    window: Window,
    filter: Filter,
    weights: Weights,
) -> Result<Image> {
    resize_at(
        OptLevel::default(),
        from,
        width,
        height,
        window,
        filter,
        weights,
    )
}

/// As [`resize_window`], with a choice of instructions and threads. [`Filter::Nearest`] multiplies nothing and has no use
/// for them.
pub(crate) fn resize_at(
    level: OptLevel,
    from: ImageView<'_>,
    width: usize,
    height: usize,
    window: Window,
    filter: Filter,
    weights: Weights,
) -> Result<Image> {
    let inside = |at: usize, length: usize, whole: usize| {
        at.checked_add(length).is_some_and(|end| end <= whole)
    };
    if !inside(window.x, window.width, width) || !inside(window.y, window.height, height) {
        return Err(ImageError::Size(format!(
            "{window:?} is not within {width} x {height} pixels"
        )));
    }
    let bytes = bytes_of(window.width, window.height, from.channels())?;
    if width.max(height) > LONGEST {
        return Err(ImageError::Size(format!(
            "a picture of {width} x {height} pixels has a side of more than {LONGEST}"
        )));
    }
    if filter == Filter::Nearest {
        return nearest::nearest(from, width, height, window, weights);
    }
    let taps = |from: usize, to: usize, at: usize, length: usize| {
        let make = match weights {
            Weights::Pillow => taps::pillow,
            Weights::Torchvision => taps::torchvision,
        };
        make(from, to, at, length, filter)
    };
    // What keeps its size is not multiplied: there the window is cut from the source.
    let (mut cut, mut rows, mut columns) = (Window::whole(from.width(), from.height()), None, None);
    if height == from.height() {
        (cut.y, cut.height) = (window.y, window.height);
    } else {
        rows = Some(taps(from.height(), height, window.y, window.height)?);
    }
    if width == from.width() {
        (cut.x, cut.width) = (window.x, window.width);
    } else {
        columns = Some(taps(from.width(), width, window.x, window.width)?);
    }
    let from = from.subview(cut.x, cut.y, cut.width, cut.height)?;
    let mut data = vec![0; bytes];
    isovec_pixels::resize(
        from.pixels()?,
        columns.as_ref(),
        rows.as_ref(),
        &mut data,
        level,
    )?;
    Image::new(window.width, window.height, from.channels(), data)
}
