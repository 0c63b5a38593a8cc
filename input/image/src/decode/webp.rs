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
    // What stands behind is not the picture's, and would be read by a chunk that is too long.
    let bytes = &bytes[..needed as usize];
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(error)?;
    decoder.set_memory_limit(options.memory());
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    let channels = match decoder.has_alpha() {
        true => Channels::Rgba,
        false => Channels::Rgb,
    };
    let mut data = vec![0; options.allow(width, height, channels)?];
    check(&bytes[(HEADER + 4).min(bytes.len())..], width, height, true)?;
    decoder.read_image(&mut data).map_err(error)?;
    // What is damaged beside the pixels does not cost the picture.
    let exif = decoder.exif_metadata().ok().flatten();
    let xmp = decoder.xmp_metadata().ok().flatten();
    let orientation = Orientation::find(exif.as_deref(), xmp.as_deref());
    let image = Image::new(width, height, channels, data);
    Ok((image?, orientation))
}

/// Checks the chunks of a file, or of an animation's frame: that they end where the file does, and that no lossy frame is
/// larger than the picture. A frame holds no frames. The crate takes zeros for what is missing, and a frame's memory before it looks at its size.
fn check(mut chunks: &[u8], width: usize, height: usize, animated: bool) -> Result<()> {
    /// Bytes before the chunks of an animation's frame.
    const PLACE: usize = 16;
    /// Bytes of a lossy frame before its size: a tag, and a start code.
    const START: usize = 6;
    let side = |bytes: &[u8]| {
        let bits = bytes
            .first_chunk()
            .map_or(0, |bytes| u16::from_le_bytes(*bytes));
        usize::from(bits & 0x3fff)
    };
    while let Some((head, rest)) = chunks.split_first_chunk::<8>() {
        let [a, b, c, d, length @ ..] = *head;
        let length = u32::from_le_bytes(length) as usize;
        let content = rest.get(..length);
        let content = content.ok_or_else(|| Format::WebP.damaged("a chunk is cut short"))?;
        match (
            &[a, b, c, d],
            content.get(START..START + 4),
            content.get(PLACE..),
        ) {
            (b"VP8 ", Some(size), _) if side(size) > width || side(&size[2..]) > height => {
                return Err(Format::WebP.damaged("a frame is larger than the picture"));
            }
            (b"ANMF", _, Some(inside)) if animated => check(inside, width, height, false)?,
            _ => {}
        }
        // Chunks begin at even places.
        chunks = rest.get(length + length % 2..).unwrap_or_default();
    }
    Ok(())
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
