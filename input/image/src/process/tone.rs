//! What a byte becomes: scaled, shifted, divided by a deviation. `isovec-pixels` computes it.

use isovec_pixels::{OptLevel, Scale};

use super::Reference;
use super::geometry::Axis;
use crate::{ImageView, Result};

/// What is done to a byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tone {
    /// `do_rescale`: what it is multiplied by.
    pub(super) scale: Option<f64>,
    /// EfficientNet's `rescale_offset`: 1 is taken away after scaling.
    pub(super) offset: bool,
    /// `do_normalize`: the mean that is taken away, and the deviation that it is divided by.
    pub(super) normal: Option<(f64, f64)>,
    /// EfficientNet's `include_top`: it is divided by a deviation (again).
    pub(super) again: Option<f64>,
}

impl Tone {
    /// The arithmetic, rounded to single precision where the reference rounds.
    fn steps(&self, reference: Reference) -> isovec_pixels::Tone {
        let single = |(mean, deviation): (f64, f64)| (mean as f32, deviation as f32);
        let mut normal = self.normal.map(single);
        let scale = match (reference, self.scale) {
            (_, None) => Scale::Single(1.0),
            // One division for both steps: mean and deviation are scaled in place of the byte.
            (Reference::Torchvision, Some(scale)) if normal.is_some() && !self.offset => {
                let up = (1.0 / scale) as f32;
                normal = normal.map(|(mean, deviation)| (mean * up, deviation * up));
                Scale::Single(1.0)
            }
            (Reference::Torchvision, Some(scale)) => Scale::Single(scale as f32),
            (Reference::Pillow, Some(scale)) => Scale::Double(scale),
        };
        isovec_pixels::Tone {
            scale,
            offset: if self.scale.is_some() && self.offset {
                1.0
            } else {
                0.0
            },
            normal,
            divisor: self.again.map(|deviation| deviation as f32),
        }
    }
}

/// What is done to each channel.
#[derive(Debug, Clone)]
pub(super) struct Tones {
    channels: [Tone; 3],
    steps: [isovec_pixels::Tone; 3],
}

impl Tones {
    pub(super) fn new(channels: [Tone; 3], reference: Reference) -> Self {
        Self {
            channels,
            steps: channels.map(|tone| tone.steps(reference)),
        }
    }

    /// What is done to each channel, in words.
    pub(super) fn identity(&self) -> String {
        let channels = self.channels.iter().map(|tone| {
            let Tone {
                scale,
                offset,
                normal,
                again,
            } = tone;
            format!("x {scale:?}, offset {offset}, normal {normal:?}, again {again:?}")
        });
        channels.collect::<Vec<_>>().join(" | ")
    }

    /// What becomes of numbers between bytes, channel by channel, each step for itself.
    pub(super) fn numbers(&self, values: &mut [f32]) {
        let plane = (values.len() / 3).max(1);
        for (tone, plane) in self.channels.iter().zip(values.chunks_exact_mut(plane)) {
            let steps = tone.steps(Reference::Pillow);
            for value in plane {
                *value = steps.of(*value);
            }
        }
    }

    /// The three channels of a picture one after the other, with padding as the axes say. Padding is what a black pixel is.
    ///
    /// # Errors
    /// None: a picture of three channels has a value for each byte.
    pub(super) fn planes(
        &self,
        image: ImageView<'_>,
        rows: Axis,
        columns: Axis,
    ) -> Result<Vec<f32>> {
        let (height, width) = (rows.len(), columns.len());
        let mut data = vec![0.0; 3 * height * width];
        let mut planes = data.chunks_exact_mut(height * width);
        let (Some(red), Some(green), Some(blue)) = (planes.next(), planes.next(), planes.next())
        else {
            return Ok(data);
        };
        let level = OptLevel::default();
        if (height, width) == (image.height(), image.width()) {
            isovec_pixels::normalise(image.pixels()?, &self.steps, [red, green, blue], level)?;
            return Ok(data);
        }
        let mut planes = [red, green, blue];
        for (plane, steps) in planes.iter_mut().zip(&self.steps) {
            plane.fill(steps.of(0.0));
        }
        for y in 0..image.height() {
            let row = image.subview(0, y, image.width(), 1)?;
            let start = (rows.before() + y) * width + columns.before();
            let to = planes
                .each_mut()
                .map(|plane| &mut plane[start..][..image.width()]);
            isovec_pixels::normalise(row.pixels()?, &self.steps, to, level)?;
        }
        Ok(data)
    }
}
