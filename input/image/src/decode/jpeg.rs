//! JPEG, with the pixels of libjpeg-turbo's defaults: exact inverse cosines, smooth upsampling, smoothed blocks where a
//! progressive file lacks scans.

use libjpeg_turbo_rs::{ColorSpace, DecodeLimits, Decoder, JpegError, PixelFormat};

use super::{DecodeOptions, Decoded, Format};
use crate::{Channels, Image, ImageError, Orientation, Result};

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    let limits = DecodeLimits {
        max_pixels: options.max_pixels,
        max_memory: Some(options.memory() as u64),
        ..DecodeLimits::default()
    };
    let mut decoder = Decoder::new_with_limits(bytes, limits).map_err(error)?;
    let header = decoder.header();
    let (width, height) = (header.width(), header.height());
    if header.precision != 8 || header.is_lossless {
        let what = format!("a JPEG of {} bits, or a lossless one,", header.precision);
        return Err(Format::Jpeg.unsupported(what));
    }
    let (channels, asked) = match decoder.jpeg_color_space() {
        ColorSpace::Grayscale => (Channels::Gray, PixelFormat::Grayscale),
        ColorSpace::Cmyk | ColorSpace::Ycck => (Channels::Rgba, PixelFormat::Cmyk),
        ColorSpace::Rgb | ColorSpace::YCbCr => (Channels::Rgb, PixelFormat::Rgb),
        ColorSpace::Unknown => {
            let what = format!("a JPEG of {} components", header.components.len());
            return Err(Format::Jpeg.unsupported(what));
        }
    };
    options.allow(width, height, channels)?;
    decoder.set_output_format(asked);
    decoder.set_block_smoothing(true);
    let orientation = Orientation::find(decoder.exif_data(), decoder.xmp_data());
    let decoded = decoder.decode_image().map_err(error)?;
    let (channels, data) = match asked {
        PixelFormat::Cmyk => (Channels::Rgb, rgb_of_cmyk(&decoded.data)),
        _ => (channels, decoded.data),
    };
    let image = Image::new(width, height, channels, data);
    Ok((
        image.map_err(|error| Format::Jpeg.damaged(error))?,
        orientation,
    ))
}

/// Pillow takes all CMYK in JPEG for inverted, as Adobe writes it, and multiplies by what black leaves, rounded.
fn rgb_of_cmyk(pixels: &[u8]) -> Vec<u8> {
    let (pixels, _) = pixels.as_chunks();
    let mut rgb = Vec::with_capacity(pixels.len() * 3);
    for &[c, m, y, light] in pixels {
        rgb.extend([c, m, y].map(|inverted: u8| {
            let product = u32::from(255 - inverted) * u32::from(light) + 128;
            light - ((product + (product >> 8)) >> 8) as u8
        }));
    }
    rgb
}

fn error(error: JpegError) -> ImageError {
    match error {
        JpegError::Unsupported(what) => Format::Jpeg.unsupported(what),
        JpegError::LimitExceeded {
            what,
            actual,
            limit,
        } => ImageError::Size(format!(
            "JPEG: {what} of {actual} exceeds the limit of {limit}"
        )),
        error => Format::Jpeg.damaged(error),
    }
}
