//! A picture's file to its pixels. The content decides the format, whatever the file is called.

mod gif;
mod jpeg;
mod png;
mod webp;

use std::fmt;

use crate::image::bytes_of;
use crate::{Channels, Image, ImageError, Orientation, Result};

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// PNG; of an animated one, the picture that other programs see.
    Png,
    /// JPEG of 8 bits: baseline and progressive; gray, YCbCr, RGB, CMYK and YCCK.
    Jpeg,
    /// WebP, lossy and lossless; of an animated one, the first frame.
    WebP,
    /// GIF, its first frame.
    Gif,
}

impl fmt::Display for Format {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::WebP => "WebP",
            Self::Gif => "GIF",
        })
    }
}

impl Format {
    /// The format that a file's first bytes name. At most 12 bytes are looked at.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::WebP),
            _ => None,
        }
    }

    fn damaged(self, why: impl fmt::Display) -> ImageError {
        let why = why.to_string();
        ImageError::Damaged { format: self, why }
    }

    fn unsupported(self, what: impl Into<String>) -> ImageError {
        let what = what.into();
        ImageError::Unsupported { format: self, what }
    }
}

/// Limits that hold before memory is taken, and whether EXIF is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecodeOptions {
    /// The most pixels. Decoding takes up to 16 bytes for each of them.
    pub max_pixels: u64,
    /// The longest file, in bytes.
    pub max_bytes: u64,
    /// Whether a picture is turned as its EXIF or XMP asks for.
    pub turn: bool,
}

impl Default for DecodeOptions {
    /// 100 million pixels, a file of 256 MiB; pictures are turned.
    fn default() -> Self {
        Self {
            max_pixels: 100_000_000,
            max_bytes: 256 << 20,
            turn: true,
        }
    }
}

impl DecodeOptions {
    /// Checks the size that a header names, and gives the bytes of its pixels.
    fn allow(&self, width: usize, height: usize, channels: Channels) -> Result<usize> {
        let (wide, high) = (width as u64, height as u64);
        if wide.saturating_mul(high) > self.max_pixels {
            return Err(ImageError::TooManyPixels {
                width: wide,
                height: high,
                limit: self.max_pixels,
            });
        }
        bytes_of(width, height, channels)
    }

    /// A limit for what a decoder takes besides the pixels: metadata that a small file unpacks to, tables, half-done rows.
    fn memory(&self) -> usize {
        let bytes = self.max_pixels.saturating_mul(16).saturating_add(16 << 20);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// The pixels of a file, and how it has to be turned.
type Decoded = (Image, Orientation);

/// Decodes a PNG, a JPEG, a WebP, or the first frame of a GIF.
///
/// The pixels are Pillow's: those of libjpeg-turbo and libwebp; of 16 bits the upper 8, but for gray ones without alpha,
/// which end at 255; palettes are looked up; CMYK becomes RGB as Pillow has it. Color profiles and gamma are ignored.
/// A file that ends too early is refused.
///
/// # Errors
/// [`ImageError`] says which limit was passed, what is damaged, or what is not read.
pub fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Image> {
    if bytes.len() as u64 > options.max_bytes {
        return Err(ImageError::TooManyBytes {
            bytes: bytes.len() as u64,
            limit: options.max_bytes,
        });
    }
    let format = Format::of(bytes).ok_or(ImageError::UnknownFormat {
        bytes: bytes.len(),
        hint: hint(bytes),
    })?;
    let (image, orientation) = match format {
        Format::Png => png::decode(bytes, options),
        Format::Jpeg => jpeg::decode(bytes, options),
        Format::WebP => webp::decode(bytes, options),
        Format::Gif => gif::decode(bytes, options),
    }?;
    Ok(match options.turn {
        true => orientation.upright(image),
        false => image,
    })
}

/// What bytes look like that are no picture that is read.
fn hint(bytes: &[u8]) -> &'static str {
    match bytes {
        [] => "; there are none",
        [
            _,
            _,
            _,
            _,
            b'f',
            b't',
            b'y',
            b'p',
            b'a',
            b'v',
            b'i',
            b'f' | b's',
            ..,
        ] => "; they look like AVIF, which is not read",
        [_, _, _, _, b'f', b't', b'y', b'p', b'h' | b'm', ..] => {
            "; they look like HEIC, which is not read"
        }
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => {
            "; they look like TIFF, which is not read"
        }
        [b'B', b'M', ..] => "; they look like BMP, which is not read",
        [b'<', ..] => "; they look like SVG or HTML",
        _ => "",
    }
}
