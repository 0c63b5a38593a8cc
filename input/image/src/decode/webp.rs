//! WebP, with libwebp's pixels.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::{DecodeOptions, Decoded, Format};
use crate::{Channels, Image, ImageError, Orientation, Result};

/// RIFF's name and the length of what follows it.
const HEADER: usize = 8;

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    // The crate takes bytes that are missing for zeros.
    let length = bytes[4..]
        .first_chunk()
        .map_or(0, |length| u32::from_le_bytes(*length));
    let needed = u64::from(length) + HEADER as u64;
    if needed > bytes.len() as u64 {
        let why = format!("it ends after {} of its {needed} bytes", bytes.len());
        return Err(Format::WebP.damaged(why));
    }
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(error)?;
    decoder.set_memory_limit(options.memory());
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    let channels = match decoder.has_alpha() {
        true => Channels::Rgba,
        false => Channels::Rgb,
    };
    let mut data = vec![0; options.allow(width, height, channels)?];
    decoder.read_image(&mut data).map_err(error)?;
    // What is damaged beside the pixels does not cost the picture.
    let exif = decoder.exif_metadata().ok().flatten();
    let xmp = decoder.xmp_metadata().ok().flatten();
    let orientation = Orientation::find(exif.as_deref(), xmp.as_deref());
    let image = Image::new(width, height, channels, data);
    Ok((image?, orientation))
}

fn error(error: DecodingError) -> ImageError {
    match error {
        DecodingError::UnsupportedFeature(what) => Format::WebP.unsupported(what),
        DecodingError::MemoryLimitExceeded | DecodingError::ImageTooLarge => {
            ImageError::Size("WebP: it needs more memory than is allowed".into())
        }
        error => Format::WebP.damaged(error),
    }
}
