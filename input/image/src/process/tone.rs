//! What a byte becomes: scaled, shifted, divided by a deviation. There are 256 bytes, so it is computed once for each.

use super::Reference;
use super::geometry::Axis;
use crate::ImageView;

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
    /// The value of a byte, or of a number between two of them, rounded to single precision where the reference rounds.
    fn of(&self, byte: f32, reference: Reference) -> f32 {
        let mut value = byte;
        let mut normal = self
            .normal
            .map(|(mean, deviation)| (mean as f32, deviation as f32));
        match (reference, self.scale) {
            (_, None) => {}
            // One division for both steps: mean and deviation are scaled in place of the byte.
            (Reference::Torchvision, Some(scale)) if normal.is_some() && !self.offset => {
                let up = (1.0 / scale) as f32;
                normal = normal.map(|(mean, deviation)| (mean * up, deviation * up));
            }
            (Reference::Torchvision, Some(scale)) => value *= scale as f32,
            (Reference::Pillow, Some(scale)) => value = (f64::from(byte) * scale) as f32,
        }
        if self.scale.is_some() && self.offset {
            value -= 1.0;
        }
        if let Some((mean, deviation)) = normal {
            value = (value - mean) / deviation;
        }
        match self.again {
            Some(deviation) => value / deviation as f32,
            None => value,
        }
    }
}

/// The values of all bytes, in each channel.
#[derive(Debug, Clone)]
pub(super) struct Tones {
    channels: [Tone; 3],
    values: Box<[[f32; 256]; 3]>,
}

impl Tones {
    pub(super) fn new(channels: [Tone; 3], reference: Reference) -> Self {
        let values =
            channels.map(|tone| std::array::from_fn(|byte| tone.of(byte as f32, reference)));
        Self {
            channels,
            values: Box::new(values),
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
            for value in plane {
                *value = tone.of(*value, Reference::Pillow);
            }
        }
    }

    /// The three channels of a picture one after the other, with padding as the axes say. Padding is what a black pixel is.
    pub(super) fn planes(&self, image: ImageView<'_>, rows: Axis, columns: Axis) -> Vec<f32> {
        let (height, width) = (rows.len(), columns.len());
        let mut data = Vec::with_capacity(3 * height * width);
        for (channel, values) in self.values.iter().enumerate() {
            let black = values[0];
            data.resize(data.len() + rows.before() * width, black);
            for row in image.rows() {
                let (pixels, _) = row.as_chunks::<3>();
                let start = data.len();
                data.resize(start + columns.before(), black);
                data.extend(
                    pixels
                        .iter()
                        .map(|pixel| values[usize::from(pixel[channel])]),
                );
                data.resize(start + width, black);
            }
            data.resize((channel + 1) * height * width, black);
        }
        data
    }
}
