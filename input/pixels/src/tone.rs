//! What a byte becomes as a number: scaled, shifted, divided by a deviation.

use crate::simd::compiled_for;
use crate::{InstructionSet, OptLevel, PixelsError, Result, Rows, threads};

/// What is done to a byte of a channel, step by step. Each step ends in single precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tone {
    /// What it is multiplied by.
    pub scale: Scale,
    /// What is taken away after that.
    pub offset: f32,
    /// The mean that is taken away, and the deviation that it is divided by.
    pub normal: Option<(f32, f32)>,
    /// What it is divided by in the end.
    pub divisor: Option<f32>,
}

/// A factor, with its precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// The product is made in double precision, and rounded to single.
    Double(f64),
    /// The product is made in single precision.
    Single(f32),
}

impl Tone {
    /// The value of a byte, or of a number between two of them.
    #[must_use]
    #[inline]
    pub fn of(&self, byte: f32) -> f32 {
        let scaled = match self.scale {
            Scale::Double(scale) => (f64::from(byte) * scale) as f32,
            Scale::Single(scale) => byte * scale,
        };
        let mut value = scaled - self.offset;
        if let Some((mean, deviation)) = self.normal {
            value = (value - mean) / deviation;
        }
        match self.divisor {
            Some(divisor) => value / divisor,
            None => value,
        }
    }
}

/// The three channels of a picture, each `from.height()` rows of `from.width()` values.
///
/// # Errors
/// [`PixelsError::Size`] where pixels have not 3 channels, or a channel has not one value for each pixel.
pub fn normalise(
    from: Rows<'_>,
    tones: &[Tone; 3],
    to: [&mut [f32]; 3],
    level: OptLevel,
) -> Result<()> {
    let (width, plane) = (from.width(), from.width() * from.height());
    if from.channels() != 3 || to.iter().any(|to| to.len() != plane) {
        return Err(PixelsError::Size(format!(
            "{width} x {} pixels with {} channels do not make three channels of {}, {} and {} values",
            from.height(),
            from.channels(),
            to[0].len(),
            to[1].len(),
            to[2].len()
        )));
    }
    let set = level.instructions();
    let tables = (set == InstructionSet::Scalar).then(|| tones.map(table));
    let run = |first: usize, mut to: [&mut [f32]; 3]| {
        let step = match from.whole() {
            Some(_) => to[0].len(),
            None => width,
        };
        let mut y = first;
        while !to[0].is_empty() {
            let mut here = [&mut [][..], &mut [], &mut []];
            for (here, to) in here.iter_mut().zip(&mut to) {
                let (these, rest) = std::mem::take(to).split_at_mut(step);
                (*here, *to) = (these, rest);
            }
            let pixels = match from.whole() {
                Some(whole) => &whole[3 * width * y..][..3 * step],
                None => from.row(y),
            };
            match &tables {
                Some(tables) => by_table(pixels, tables, here),
                None => compiled_for!(
                    set,
                    by_steps(pixels: &[u8], tones: &[Tone; 3], here: [&mut [f32]; 3])
                ),
            }
            y += 1;
        }
    };
    threads::split_planes(level.threads_for(15 * plane), to, width, run);
    Ok(())
}

/// The values of all bytes.
fn table(tone: Tone) -> [f32; 256] {
    std::array::from_fn(|byte| tone.of(byte as f32))
}

/// The reference.
fn by_table(pixels: &[u8], tables: &[[f32; 256]; 3], to: [&mut [f32]; 3]) {
    let (pixels, _) = pixels.as_chunks::<3>();
    let [red, green, blue] = to;
    let to = red.iter_mut().zip(green).zip(blue);
    for (pixel, ((red, green), blue)) in pixels.iter().zip(to) {
        *red = tables[0][usize::from(pixel[0])];
        *green = tables[1][usize::from(pixel[1])];
        *blue = tables[2][usize::from(pixel[2])];
    }
}

/// Pixels at a time, whose steps are computed one after the other.
const MANY: usize = 64;

/// The same by arithmetic, which registers are faster with than with tables.
#[inline(always)]
fn by_steps(pixels: &[u8], tones: &[Tone; 3], to: [&mut [f32]; 3]) {
    let (pixels, _) = pixels.as_chunks::<3>();
    let (blocks, rest) = pixels.as_chunks::<MANY>();
    for (channel, (to, tone)) in to.into_iter().zip(tones).enumerate() {
        let (to, last) = to.as_chunks_mut::<MANY>();
        for (to, pixels) in to.iter_mut().zip(blocks) {
            let mut bytes = [0; MANY];
            for (byte, pixel) in bytes.iter_mut().zip(pixels) {
                *byte = pixel[channel];
            }
            values(&bytes, tone, to);
        }
        for (to, pixel) in last.iter_mut().zip(rest) {
            *to = tone.of(f32::from(pixel[channel]));
        }
    }
}

/// [`Tone::of`] of many bytes.
#[inline(always)]
fn values(bytes: &[u8; MANY], tone: &Tone, to: &mut [f32; MANY]) {
    match tone.scale {
        Scale::Double(scale) => {
            for (to, &byte) in to.iter_mut().zip(bytes) {
                *to = (f64::from(byte) * scale) as f32 - tone.offset;
            }
        }
        Scale::Single(scale) => {
            for (to, &byte) in to.iter_mut().zip(bytes) {
                *to = f32::from(byte) * scale - tone.offset;
            }
        }
    }
    if let Some((mean, deviation)) = tone.normal {
        for to in to.iter_mut() {
            *to = (*to - mean) / deviation;
        }
    }
    if let Some(divisor) = tone.divisor {
        for to in to.iter_mut() {
            *to /= divisor;
        }
    }
}
