//! PNG, of every depth and color type.

use std::io::Cursor;

use png::text_metadata::ITXtChunk;
use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};

use super::{DecodeOptions, Decoded, Format};
use crate::{Channels, Image, ImageError, Orientation, Result};

pub(super) fn decode(bytes: &[u8], options: &DecodeOptions) -> Result<Decoded> {
    let limits = Limits {
        bytes: options.memory(),
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    // A profile of a few bytes may unpack to gigabytes, and nobody asks for it.
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::IDENTITY);
    let header = decoder.read_header_info().map_err(error)?;
    let (width, height) = (header.width as usize, header.height as usize);
    let (color, depth) = (header.color_type, header.bit_depth);
    options.allow(width, height, Channels::Rgba)?;
    let mut reader = decoder.read_info().map_err(error)?;
    let rows = reader
        .output_buffer_size()
        .ok_or_else(|| Format::Png.damaged("its rows cannot be counted"))?;
    let mut packed = vec![0; rows];
    let frame = reader.next_frame(&mut packed).map_err(error)?;
    // The chunks after the pixels: EXIF may be among them, and a file without its end was cut.
    reader.finish().map_err(error)?;
    let info = reader.info();
    let rows = packed.chunks_exact(frame.line_size).take(height);
    let key = info.trns.as_deref();
    let (channels, data) = match (color, depth) {
        (ColorType::Indexed, _) => {
            let colors = info.palette.as_deref();
            let colors = colors.ok_or_else(|| Format::Png.damaged("its palette is missing"))?;
            let palette = Palette::new(colors, key);
            let mut data = Vec::with_capacity(width * height * palette.channels.count());
            for row in rows {
                for index in samples(row, depth).take(width) {
                    let color = palette.of(index);
                    data.extend(color.ok_or_else(|| Format::Png.damaged("a pixel has no color"))?);
                }
            }
            (palette.channels, data)
        }
        (ColorType::GrayscaleAlpha, BitDepth::Eight) => (Channels::GrayAlpha, packed),
        (ColorType::GrayscaleAlpha, _) => (Channels::GrayAlpha, upper(&packed)),
        (ColorType::Rgba, BitDepth::Eight) => (Channels::Rgba, packed),
        (ColorType::Rgba, _) => (Channels::Rgba, upper(&packed)),
        (ColorType::Grayscale, _) if let Some(key) = key => {
            let pixels = rows.flat_map(|row| samples(row, depth).take(width));
            (
                Channels::GrayAlpha,
                keyed(pixels.map(|gray| [gray]), key, |gray| {
                    gray_byte(gray, depth)
                }),
            )
        }
        (ColorType::Grayscale, BitDepth::Eight) => (Channels::Gray, packed),
        (ColorType::Grayscale, _) => {
            let grays = rows.flat_map(|row| samples(row, depth).take(width));
            (
                Channels::Gray,
                grays.map(|gray| gray_byte(gray, depth)).collect(),
            )
        }
        (ColorType::Rgb, _) if let Some(key) = key => {
            let mut samples = rows.flat_map(|row| samples(row, depth));
            let pixels =
                std::iter::from_fn(|| Some([samples.next()?, samples.next()?, samples.next()?]));
            let shift = depth as u32 - 8;
            (
                Channels::Rgba,
                keyed(pixels, key, |sample| (sample >> shift) as u8),
            )
        }
        (ColorType::Rgb, BitDepth::Eight) => (Channels::Rgb, packed),
        (ColorType::Rgb, _) => (Channels::Rgb, upper(&packed)),
    };
    let named = |text: &&ITXtChunk| text.keyword == "XML:com.adobe.xmp";
    let xmp = info.utf8_text.iter().find(named);
    let xmp = xmp.and_then(|text| text.get_text().ok());
    let exif = info.exif_metadata.as_deref();
    let orientation = Orientation::find(exif, xmp.as_deref().map(str::as_bytes));
    let image = Image::new(width, height, channels, data);
    Ok((
        image.map_err(|error| Format::Png.damaged(error))?,
        orientation,
    ))
}

/// The samples of a row, each of less than a byte, of one, or of two; from the upper bits. Those of less than a byte may
/// end in padding.
fn samples(row: &[u8], depth: BitDepth) -> impl Iterator<Item = u16> {
    let bits = depth as usize;
    let mask = u16::MAX >> (16 - bits);
    (0..row.len() * 8 / bits).map(move |at| match bits {
        16 => u16::from_be_bytes([row[at * 2], row[at * 2 + 1]]),
        _ => u16::from(row[at * bits / 8]) >> (8 - bits - at * bits % 8) & mask,
    })
}

/// The byte of a gray sample. Pillow keeps 16 bits as they are, and ends them at 255 where it makes bytes of them.
fn gray_byte(sample: u16, depth: BitDepth) -> u8 {
    match depth {
        BitDepth::Sixteen => sample.min(255) as u8,
        // Divides without a rest: the brightest sample is 1, 3, 15 or 255.
        depth => (sample * (255 / (u16::MAX >> (16 - depth as u32)))) as u8,
    }
}

/// The upper bytes of samples of two.
fn upper(packed: &[u8]) -> Vec<u8> {
    let (samples, _) = packed.as_chunks();
    samples.iter().map(|&[high, _]: &[u8; 2]| high).collect()
}

/// Pixels with an alpha that is 0 where all samples are those of the key, and 255 elsewhere.
fn keyed<const SAMPLES: usize>(
    pixels: impl Iterator<Item = [u16; SAMPLES]>,
    key: &[u8],
    byte: impl Fn(u16) -> u8,
) -> Vec<u8> {
    // The crate drops the upper bytes of a key where samples have none.
    let key: Vec<u16> = match key.len() > SAMPLES {
        true => samples(key, BitDepth::Sixteen).collect(),
        false => samples(key, BitDepth::Eight).collect(),
    };
    let mut data = Vec::new();
    for pixel in pixels {
        data.extend(pixel.iter().map(|&sample| byte(sample)));
        data.push(if key == pixel { 0 } else { 255 });
    }
    data
}

/// The colors of indices.
struct Palette {
    channels: Channels,
    colors: Vec<[u8; 4]>,
}

impl Palette {
    fn new(colors: &[u8], alpha: Option<&[u8]>) -> Self {
        let (colors, _) = colors.as_chunks();
        let opacities = alpha.unwrap_or_default().iter().copied();
        let opacities = opacities.chain(std::iter::repeat(255));
        let all = colors.iter().zip(opacities);
        Self {
            channels: match alpha {
                Some(_) => Channels::Rgba,
                None => Channels::Rgb,
            },
            colors: all.map(|(&[r, g, b], a)| [r, g, b, a]).collect(),
        }
    }

    fn of(&self, index: u16) -> Option<&[u8]> {
        let color = self.colors.get(usize::from(index))?;
        Some(&color[..self.channels.count()])
    }
}

fn error(error: DecodingError) -> ImageError {
    match error {
        DecodingError::LimitsExceeded => {
            ImageError::Size("PNG: its metadata unpack to more than is allowed".into())
        }
        error => Format::Png.damaged(error),
    }
}
