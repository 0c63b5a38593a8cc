//! A line of text, cut out, as the networks read it that turn it and recognise it.

use isovec_image::{Channels, Image, PixelValues};

use crate::resize::{planes, resize};
use crate::{OcrError, Result};

/// The height of a line.
const HEIGHT: usize = 48;

/// The least width of what the recogniser reads.
const WIDTH: usize = 320;

/// The width of what the network reads that knows which way up a line is.
const UPRIGHT_WIDTH: usize = 192;

/// A line is turned where it is surer than this that it stands on its head.
const SURE: f32 = 0.9;

/// What the network of directions reads: `[3, 48, 192]`, the planes of blue, green and red from -1 to 1. Shorter lines are filled up
/// with 0, longer ones are squeezed.
///
/// # Errors
/// None for a line that there is.
pub fn upright_input(line: &Image) -> Result<PixelValues> {
    input(line, UPRIGHT_WIDTH)
}

/// Whether a line stands on its head, from the probabilities `[upright, turned]`.
///
/// # Errors
/// [`OcrError::Output`] for anything but two finite probabilities.
pub fn is_upside_down(values: &[f32]) -> Result<bool> {
    match *values {
        [upright, turned] if upright.is_finite() && turned.is_finite() => {
            Ok(turned > upright && turned > SURE)
        }
        _ => Err(OcrError::Output {
            network: "the network of directions",
            got: format!("{} values, or one that is not finite", values.len()),
            wanted: "two probabilities".into(),
        }),
    }
}

/// The line turned by a half.
///
/// # Errors
/// None for a line that there is.
pub fn turned(line: &Image) -> Result<Image> {
    let count = line.channels().count();
    let pixels = line.data().chunks_exact(count).rev();
    let data = pixels.flatten().copied().collect();
    Ok(Image::new(
        line.width(),
        line.height(),
        line.channels(),
        data,
    )?)
}

/// What the recogniser reads: `[3, 48, width]`, the planes of blue, green and red from -1 to 1. The width follows the line's; a line
/// that is narrower than 320 is filled up with 0.
///
/// # Errors
/// None for a line that there is.
pub fn line_input(line: &Image) -> Result<PixelValues> {
    let widest = WIDTH as f64 / HEIGHT as f64;
    let ratio = line.width() as f64 / line.height() as f64;
    input(line, (HEIGHT as f64 * widest.max(ratio)) as usize)
}

/// A line of 48 rows within `width` columns.
fn input(line: &Image, width: usize) -> Result<PixelValues> {
    debug_assert_eq!(line.channels(), Channels::Rgb);
    let ratio = line.width() as f64 / line.height() as f64;
    let own = (HEIGHT as f64 * ratio).ceil() as usize;
    let resized = resize(line.view(), own.min(width), HEIGHT)?;
    // In single precision, as numpy computes it.
    let values = std::array::from_fn(|byte| (byte as f32 / 255.0 - 0.5) / 0.5);
    Ok(PixelValues {
        channels: 3,
        height: HEIGHT,
        width,
        data: planes(&resized, &values, width, 0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_turned_where_it_is_sure() {
        assert_eq!(is_upside_down(&[0.05, 0.95]), Ok(true));
        assert_eq!(is_upside_down(&[0.1, 0.9]), Ok(false));
        assert_eq!(is_upside_down(&[0.95, 0.05]), Ok(false));
        assert!(is_upside_down(&[0.5]).is_err());
        assert!(is_upside_down(&[f32::NAN, 1.0]).is_err());
        let line = Image::new(2, 1, Channels::Rgb, vec![1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(turned(&line).unwrap().data(), [4, 5, 6, 1, 2, 3]);
    }
}
