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
    // The crate takes a frame's memory before it compares the frame's size with the picture's.
    if !frames_fit(&bytes[HEADER + 4..], width, height) {
        return Err(Format::WebP.damaged("a frame is larger than the picture"));
    }
    decoder.read_image(&mut data).map_err(error)?;
    // What is damaged beside the pixels does not cost the picture.
    let exif = decoder.exif_metadata().ok().flatten();
    let xmp = decoder.xmp_metadata().ok().flatten();
    let orientation = Orientation::find(exif.as_deref(), xmp.as_deref());
    let image = Image::new(width, height, channels, data);
    Ok((image?, orientation))
}

/// Whether no lossy frame among the chunks, or in their animation's frames, is larger than the picture.
fn frames_fit(mut chunks: &[u8], width: usize, height: usize) -> bool {
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
        let content = &rest[..length.min(rest.len())];
        let fits = match &[a, b, c, d] {
            b"VP8 " => content
                .get(START..START + 4)
                .is_none_or(|size| side(size) <= width && side(&size[2..]) <= height),
            b"ANMF" => content
                .get(PLACE..)
                .is_none_or(|inside| frames_fit(inside, width, height)),
            _ => true,
        };
        if !fits {
            return false;
        }
        // Chunks begin at even places.
        chunks = rest
            .get(length.saturating_add(length % 2)..)
            .unwrap_or_default();
    }
    true
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
