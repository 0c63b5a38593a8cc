//! From a file to `pixel_values`, as one model wants them.

use serde_json::Value;

use crate::{
    Alpha, Channels, DecodeOptions, Image, ImageError, ImageView, PixelValues, Processor,
    Reference, Result, decode,
};

/// How pictures are read, where no file of a model says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whose arithmetic pixels are resized and scaled with.
    pub reference: Reference,
    /// What becomes of alpha.
    pub alpha: Alpha,
    /// How files are decoded.
    pub decoding: DecodeOptions,
}

/// Reads pictures for a model of which every input has one size.
#[derive(Debug, Clone)]
pub struct Reader {
    processor: Processor,
    decoding: DecodeOptions,
    size: (usize, usize),
}

impl Reader {
    /// Reads a model's `preprocessor_config.json`, and of its `config.json` the `model_type`.
    ///
    /// # Errors
    /// As [`Processor::from_json`], and [`ImageError::Config`] where the input's size depends on the picture.
    pub fn new(preprocessor: &[u8], config: Option<&[u8]>, options: &ReadOptions) -> Result<Self> {
        let json = String::from_utf8_lossy(preprocessor);
        let config: Option<Value> = config.and_then(|file| serde_json::from_slice(file).ok());
        let model_type = config
            .as_ref()
            .and_then(|config| config["model_type"].as_str());
        let processor = Processor::from_json(&json, model_type, options.reference)?;
        let processor = processor.with_alpha(options.alpha);
        // One that is wide and one that is high.
        let of = |width, height| -> Result<(usize, usize)> {
            let black = Image::new(width, height, Channels::Rgb, vec![0; 3 * width * height])?;
            let PixelValues { height, width, .. } = processor.process(black.view())?;
            Ok((height, width))
        };
        let size = of(3, 2)?;
        if of(2, 3)? != size {
            return Err(ImageError::Config(
                "preprocessor_config.json: the size of the input that it makes depends on the picture, and the model reads one size"
                    .into(),
            ));
        }
        Ok(Self {
            processor,
            decoding: options.decoding,
            size,
        })
    }

    /// Height and width of the input, in pixels.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// A text that two readers share if they make the same values of every file.
    #[must_use]
    pub fn identity(&self) -> String {
        let turned = match self.decoding.turn {
            true => "turned",
            false => "as stored",
        };
        format!("{turned}; {}", self.processor.identity())
    }

    /// The values of a file.
    ///
    /// # Errors
    /// As [`decode`] and [`Processor::process`].
    pub fn file(&self, bytes: &[u8]) -> Result<PixelValues> {
        self.image(decode(bytes, &self.decoding)?.view())
    }

    /// The values of pixels.
    ///
    /// # Errors
    /// As [`Processor::process`].
    pub fn image(&self, image: ImageView<'_>) -> Result<PixelValues> {
        self.processor.process(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ViT has, with another size.
    fn preprocessor(size: &str) -> String {
        format!(
            r#"{{"image_processor_type":"ViTImageProcessor","do_resize":true,"size":{size},"resample":2,"do_rescale":true,
            "rescale_factor":0.00392156862745098,"do_normalize":true,"image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5]}}"#
        )
    }

    #[test]
    fn the_size_and_the_identity_are_those_of_the_files() {
        let json = preprocessor(r#"{"height":4,"width":6}"#);
        let stored = ReadOptions {
            decoding: DecodeOptions {
                turn: false,
                ..DecodeOptions::default()
            },
            ..ReadOptions::default()
        };
        let turned = Reader::new(json.as_bytes(), None, &ReadOptions::default()).unwrap();
        assert_eq!(turned.size(), (4, 6));
        let stored = Reader::new(json.as_bytes(), None, &stored).unwrap();
        assert!(turned.identity().starts_with("turned; "));
        assert!(stored.identity().starts_with("as stored; "));
        assert_eq!(turned.identity()[8..], stored.identity()[11..]);
    }

    #[test]
    fn the_type_of_the_model_stands_in_for_the_processor() {
        let json = preprocessor(r#"{"height":4,"width":4}"#)
            .replace(r#""image_processor_type":"ViTImageProcessor","#, "");
        let read = |config: Option<&[u8]>| {
            Reader::new(json.as_bytes(), config, &ReadOptions::default())
                .map(|reader| reader.size())
        };
        assert_eq!(read(Some(br#"{"model_type":"vit"}"#)), Ok((4, 4)));
        assert!(matches!(read(None), Err(ImageError::Config(_))));
    }

    #[test]
    fn an_input_that_grows_with_the_picture_is_refused() {
        let json = preprocessor(r#"{"shortest_edge":4}"#)
            .replace("ViTImageProcessor", "CLIPImageProcessor")
            .replace(r#""do_resize""#, r#""do_center_crop":false,"do_resize""#);
        let error = Reader::new(json.as_bytes(), None, &ReadOptions::default()).unwrap_err();
        assert!(
            error.to_string().contains("depends on the picture"),
            "{error}"
        );
    }
}
