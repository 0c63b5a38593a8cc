//! The first frame of a GIF, on the whole screen that the file names.

use gif::{ColorOutput, DecodingError, MemoryLimit};
use std::num::NonZeroU64;

use super::{DecodeOptions, Decoded, Format};
use crate::{Channels, Image, ImageError, Orientation, Result};

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    let mut asked = gif::DecodeOptions::new();
    asked.set_color_output(ColorOutput::Indexed);
    asked.check_frame_consistency(true);
    let memory = NonZeroU64::new(options.memory() as u64);
    asked.set_memory_limit(memory.map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes));
    let mut decoder = asked.read_info(bytes).map_err(error)?;
    let (width, height) = (usize::from(decoder.width()), usize::from(decoder.height()));
    options.allow(width, height, Channels::Rgba)?;
    let shared = decoder.global_palette().map(<[u8]>::to_vec);
    let frame = decoder.read_next_frame().map_err(error)?;
    let frame = frame.ok_or_else(|| Format::Gif.damaged("it has no frame"))?;
    let colors = frame.palette.as_deref().or(shared.as_deref());
    let colors = colors.ok_or_else(|| Format::Gif.damaged("its palette is missing"))?;
    // What the frame leaves free is transparent where the frame has such a color, and the first color otherwise.
    let transparent = frame.transparent;
    let mut screen = vec![transparent.unwrap_or(0); width * height];
    let row = usize::from(frame.width);
    let rows = screen.chunks_exact_mut(width).skip(usize::from(frame.top));
    for (to, from) in rows.zip(frame.buffer.chunks_exact(row)) {
        to[usize::from(frame.left)..][..row].copy_from_slice(from);
    }
    let (colors, _) = colors.as_chunks::<3>();
    let mut data = Vec::with_capacity(screen.len() * if transparent.is_some() { 4 } else { 3 });
    for index in screen {
        // The transparent index need not be a color.
        let none = (Some(index) == transparent).then_some(&[0; 3]);
        let color = colors.get(usize::from(index)).or(none);
        data.extend(color.ok_or_else(|| Format::Gif.damaged("a pixel has no color"))?);
        if let Some(transparent) = transparent {
            data.push(if index == transparent { 0 } else { 255 });
        }
    }
    let channels = match transparent {
        Some(_) => Channels::Rgba,
        None => Channels::Rgb,
    };
    let image = Image::new(width, height, channels, data);
    Ok((image?, Orientation::Upright))
}

fn error(error: DecodingError) -> ImageError {
    match error {
        DecodingError::MemoryLimit | DecodingError::OutOfMemory => {
            ImageError::Size("GIF: it needs more memory than is allowed".into())
        }
        error => Format::Gif.damaged(error),
    }
}
