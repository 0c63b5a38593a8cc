//! `preprocessor_config.json`: from a picture to a model's `pixel_values`, as transformers' image processors do it.
//!
//! `family.rs` has the processors and what they do where a file says nothing, `config.rs` reads the file, `geometry.rs`
//! decides which pixels are made, `tone.rs` what a byte becomes, and `numbers.rs` resizes where nothing is rounded to bytes.

mod config;
mod family;
mod geometry;
mod numbers;
mod tone;

use crate::resize::{Filter, Weights, Window, resize_window};
use crate::{Alpha, Channels, ImageError, ImageView, Result};
use geometry::{Axis, Size};
use tone::Tones;

/// Whose bytes and whose roundings a processor has. They belong to a fingerprint: vectors of one are not exactly those of
/// the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reference {
    /// Pillow and numpy: transformers' processors before version 5, and those with `Pil` in their names since then.
    #[default]
    Pillow,
    /// Torchvision, which transformers 5 prefers where it is installed.
    Torchvision,
}

/// A model's input: `[channels, height, width]`, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct PixelValues {
    /// 3: red, green, blue.
    pub channels: usize,
    /// Rows of a channel.
    pub height: usize,
    /// Values of a row.
    pub width: usize,
    /// All values, channel by channel.
    pub data: Vec<f32>,
}

/// The most pixels of a model's input. A file may ask for any size.
const MOST: u64 = 100_000_000;

/// What a `preprocessor_config.json` asks for.
#[derive(Debug, Clone)]
pub struct Processor {
    reference: Reference,
    alpha: Alpha,
    /// Whether the file forbids to make a picture RGB.
    only_rgb: bool,
    size: Option<(Size, Filter)>,
    /// Height and width of what is cut from the middle, in the order in which it is.
    crops: Vec<(usize, usize)>,
    /// Whether pictures are resized as numbers.
    numbers: bool,
    tones: Tones,
}

impl Processor {
    /// Reads a `preprocessor_config.json`. `model_type` is that of the model's `config.json`; it decides where the file names
    /// no processor, as old files do.
    ///
    /// # Errors
    /// [`ImageError::Config`] names what is wrong or not known. Nothing that changes pixels is ignored.
    pub fn from_json(json: &str, model_type: Option<&str>, reference: Reference) -> Result<Self> {
        config::read(json, model_type, reference)
    }

    /// The same with another treatment of alpha; without it, alpha is dropped.
    #[must_use]
    pub fn with_alpha(self, alpha: Alpha) -> Self {
        Self { alpha, ..self }
    }

    /// A text that two processors share if they make the same values of every picture: whose arithmetic it is, what is
    /// resized, cut, scaled and shifted, and what becomes of alpha.
    #[must_use]
    pub fn identity(&self) -> String {
        let Self {
            reference,
            alpha,
            only_rgb: _,
            size,
            crops,
            numbers,
            tones,
        } = self;
        let size = match size {
            Some((size, filter)) => format!("{size:?} by {filter:?}"),
            None => "not resized".into(),
        };
        let tones = tones.identity();
        if *numbers {
            return format!("alpha {alpha:?}; {size} as numbers; {tones}");
        }
        format!("{reference:?}; alpha {alpha:?}; {size}; cut {crops:?}; {tones}")
    }

    /// A picture's values.
    ///
    /// # Errors
    /// [`ImageError::WrongChannels`] where the file forbids a conversion that the picture needs;
    /// [`ImageError::TooManyPixels`] where the input would have more than 100 million pixels.
    pub fn process(&self, image: ImageView<'_>) -> Result<PixelValues> {
        let rgb;
        let image = match image.channels() {
            Channels::Rgb => image,
            has if self.only_rgb => {
                return Err(ImageError::WrongChannels {
                    has,
                    wanted: Channels::Rgb,
                    hint: "the model's preprocessor_config.json has do_convert_rgb: false, so convert the picture first",
                });
            }
            _ => {
                rgb = image.to_rgb(self.alpha);
                rgb.view()
            }
        };
        let (filter, (height, width)) = match self.size {
            Some((size, filter)) => (filter, size.of(image.height(), image.width())?),
            None => (Filter::Nearest, (image.height(), image.width())),
        };
        let (mut rows, mut columns) = (Axis::new(height), Axis::new(width));
        for &(height, width) in &self.crops {
            rows.crop(height, self.reference);
            columns.crop(width, self.reference);
        }
        let (height, width) = (rows.len(), columns.len());
        if height as u64 * width as u64 > MOST {
            return Err(ImageError::TooManyPixels {
                width: width as u64,
                height: height as u64,
                limit: MOST,
            });
        }
        if self.numbers {
            let mut data = numbers::resized(image, height, width)?;
            self.tones.numbers(&mut data);
            return Ok(PixelValues {
                channels: 3,
                height,
                width,
                data,
            });
        }
        let window = Window {
            x: columns.first(),
            y: rows.first(),
            width: columns.count(),
            height: rows.count(),
        };
        let weights = match self.reference {
            Reference::Pillow => Weights::Pillow,
            Reference::Torchvision => Weights::Torchvision,
        };
        let made;
        let image = match (rows.whole(), columns.whole()) == (image.height(), image.width()) {
            true => image.subview(window.x, window.y, window.width, window.height)?,
            false => {
                made = resize_window(
                    image,
                    columns.whole(),
                    rows.whole(),
                    window,
                    filter,
                    weights,
                )?;
                made.view()
            }
        };
        Ok(PixelValues {
            channels: 3,
            height,
            width,
            data: self.tones.planes(image, rows, columns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;

    fn processed(json: &str, (high, wide): (usize, usize)) -> Result<PixelValues> {
        let byte = |at: usize| {
            let (y, x, channel) = (at / 3 / wide, at / 3 % wide, at % 3);
            ((y * 31 + x * 7 + channel * 13) * 37 % 256) as u8
        };
        let data = (0..high * wide * 3).map(byte).collect();
        let image = Image::new(wide, high, Channels::Rgb, data)?;
        Processor::from_json(json, None, Reference::default())?.process(image.view())
    }

    fn dinov3(more: &str) -> String {
        format!(r#"{{"image_processor_type": "DINOv3ViTImageProcessorFast"{more}}}"#)
    }

    /// Numbers of torch 2.8: `interpolate` with `antialias` of bytes times 1 / 255, then the mean and the deviation.
    #[test]
    fn dinov3_s_pictures_are_resized_as_numbers() {
        let fewer = [
            -0.195_416, -0.133_768, -0.072_118, 1.028_225, 1.089_874, 1.151_523, 0.812_994,
            0.876_019, 0.939_044, 0.637_923, 0.700_949, 0.763_974, 0.491_298, 0.554_043, 0.616_788,
            0.317_005, 0.379_751, 0.442_495,
        ];
        let more = [
            -2.117_904, -2.085_795, -2.047_264, -2.015_156, -1.064_732, -1.032_623, -0.994_092,
            -0.961_983, -0.011_559, 0.020_55, 0.059_08, 0.091_189,
        ];
        for (from, (height, width), wanted) in
            [((5, 4), (2, 3), &fewer[..]), ((2, 3), (3, 4), &more)]
        {
            let size = format!(r#", "size": {{"height": {height}, "width": {width}}}"#);
            let found = processed(&dinov3(&size), from).expect("it is processed");
            assert_eq!((found.height, found.width), (height, width));
            assert_eq!(found.data.len(), 3 * height * width);
            for (found, wanted) in found.data.iter().zip(wanted) {
                assert!((found - wanted).abs() < 2e-6, "{found} for {wanted}");
            }
        }
        // Of the same size, a byte is what it is by itself.
        let size = r#", "size": {"height": 5, "width": 4}"#;
        let same = processed(&dinov3(size), (5, 4)).expect("it is processed");
        let left = processed(&dinov3(r#", "do_resize": false"#), (5, 4)).expect("it is processed");
        assert_eq!(same, left);
        assert_eq!(same.data[0], (0.0 - 0.485) / 0.229);
    }

    #[test]
    fn what_dinov3_s_processor_does_not_do_here_is_refused() {
        for more in [
            r#", "resample": 3"#,
            r#", "do_center_crop": true, "crop_size": 4"#,
        ] {
            let error = processed(&dinov3(more), (5, 4))
                .expect_err("it is refused")
                .to_string();
            assert!(error.contains("DINOv3ViT"), "{error}");
        }
    }
}
