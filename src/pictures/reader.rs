//! From a picture to the squares that a model reads.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_image::{
    Alpha, Channels, DecodeOptions, Image, ImageError, ImageView, PixelValues, Processor,
    Reference, decode,
};
use isovec_model::convert::PatchGrid;
use serde_json::Value;

use super::Picture;
use super::picture::Content;
use crate::error::{Error, Result};
use crate::model::encoded::Encoded;
use crate::model::reader::unsupported;

/// The file that says how pixels become a model's input.
const PREPROCESSOR: &str = "preprocessor_config.json";

/// How a caller wants pictures read, where no file of the model says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) reference: Reference,
    pub(crate) alpha: Alpha,
    pub(crate) decoding: DecodeOptions,
}

/// Reads pictures for one model.
#[derive(Debug)]
pub(crate) struct PictureReader {
    processor: Processor,
    decoding: DecodeOptions,
    grid: PatchGrid,
}

impl PictureReader {
    /// Reads `preprocessor_config.json`, and checks that it makes what the model reads.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedModel`] for a model that reads no pictures, or other ones than the file makes;
    /// [`EngineError::MissingFile`] without the file; [`Error::Preprocessor`] for one that cannot be followed.
    pub(crate) fn read(
        bundle: &ModelBundle,
        grid: Option<PatchGrid>,
        pixels: &Pixels,
    ) -> Result<Self> {
        let grid = grid.ok_or_else(|| {
            unsupported(
                bundle,
                "it reads no pictures that isovec cuts for it",
                "Models of pictures are read from safetensors: ViT, DeiT, CLIP. Load a model of texts with `Embedder`",
            )
        })?;
        let file = bundle.files.get(PREPROCESSOR).ok_or_else(|| EngineError::MissingFile {
            origin: bundle.origin.clone(),
            file: PREPROCESSOR.into(),
            hint: "It says how pixels become the model's input; its publisher has it beside config.json".into(),
        })?;
        let refused = |source: ImageError| Error::Preprocessor {
            origin: bundle.origin.clone(),
            source: Box::new(source),
        };
        let json = String::from_utf8_lossy(file);
        let config = bundle.files.get("config.json");
        let config: Option<Value> = config.and_then(|file| serde_json::from_slice(file).ok());
        let model_type = config
            .as_ref()
            .and_then(|config| config["model_type"].as_str());
        let processor = Processor::from_json(&json, model_type, pixels.reference);
        let processor = processor.map_err(refused)?.with_alpha(pixels.alpha);
        // One that is wide and one that is high: the input may not depend on the picture.
        for (width, height) in [(3, 2), (2, 3)] {
            let black = Image::new(width, height, Channels::Rgb, vec![0; 18]).map_err(refused)?;
            let PixelValues { height, width, .. } =
                processor.process(black.view()).map_err(refused)?;
            if (height, width) != grid.pixels() {
                let (high, wide) = grid.pixels();
                return Err(refused(ImageError::Config(format!(
                    "preprocessor_config.json: it makes an input of {width} x {height} pixels, and the model reads {wide} x {high}"
                ))));
            }
        }
        Ok(Self {
            processor,
            decoding: pixels.decoding,
            grid,
        })
    }

    /// Rows that a picture becomes.
    pub(crate) fn tokens(&self) -> usize {
        self.grid.tokens()
    }

    /// What has to be equal of the way to a picture's values.
    pub(crate) fn identity(&self) -> String {
        let turned = match self.decoding.turn {
            true => "turned",
            false => "as stored",
        };
        format!("{turned}; {}", self.processor.identity())
    }

    /// Decodes a picture, makes its pixels ready, and cuts them.
    pub(crate) fn encode(&self, picture: &Picture) -> Encoded {
        let encoded = match picture.content() {
            Content::File(file) => {
                let image = decode(file, &self.decoding);
                image.and_then(|image| self.cut(image.view()))
            }
            Content::Pixels(image) => self.cut(image.view()),
        };
        encoded.unwrap_or_else(|error| Encoded::Unread(Box::new(error)))
    }

    fn cut(&self, image: ImageView<'_>) -> isovec_image::Result<Encoded> {
        let PixelValues { data, .. } = self.processor.process(image)?;
        let rows = self.grid.tokens();
        let mut values = vec![0.0; rows * self.grid.width()];
        self.grid.cut(&data, &mut values);
        Ok(Encoded::Patches { values, rows })
    }
}
