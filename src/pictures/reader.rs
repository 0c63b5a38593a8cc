//! From a picture to the squares that a model reads.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_image::{ImageError, ReadOptions, Reader};

use super::Picture;
use super::picture::Content;
use crate::error::{Error, Result};
use crate::model::encoded::Encoded;
use crate::model::squares::{self, Squares};

/// The file that says how pixels become a model's values.
const PREPROCESSOR: &str = "preprocessor_config.json";

/// Reads pictures for one model.
#[derive(Debug)]
pub(crate) struct PictureReader {
    reader: Reader,
    pub(crate) squares: Squares,
}

impl PictureReader {
    /// Reads `preprocessor_config.json`, and checks that it makes what the model reads.
    ///
    /// # Errors
    /// As [`squares::grid`]; [`EngineError::MissingFile`] without the file; [`Error::Preprocessor`] for one that cannot be
    /// followed, or that makes other pictures than the model reads.
    pub(crate) fn read(bundle: &ModelBundle, options: &ReadOptions) -> Result<Self> {
        let refused = |source: ImageError| Error::Preprocessor {
            origin: bundle.origin.clone(),
            source: Box::new(source),
        };
        let grid = squares::grid(bundle)?;
        let file = bundle.files.get(PREPROCESSOR).ok_or_else(|| EngineError::MissingFile {
            origin: bundle.origin.clone(),
            file: PREPROCESSOR.into(),
            hint: "It says how pixels become the model's input; its publisher has it beside config.json".into(),
        })?;
        let config = bundle.files.get("config.json").map(|file| &file[..]);
        let reader = Reader::new(file, config, options);
        let reader = reader.map_err(refused)?;
        let ((height, width), (high, wide)) = (reader.size(), grid.pixels());
        if (height, width) != (high, wide) {
            return Err(refused(ImageError::Config(format!(
                "preprocessor_config.json: it makes an input of {width} x {height} pixels, and the model reads {wide} x {high}"
            ))));
        }
        let squares = Squares::new(grid, reader.identity());
        Ok(Self { reader, squares })
    }

    /// Decodes a picture, makes its pixels ready, and cuts them.
    pub(crate) fn encode(&self, picture: &Picture) -> Encoded {
        let values = match picture.content() {
            Content::File(file) => self.reader.file(file),
            Content::Pixels(image) => self.reader.image(image.view()),
        };
        match values {
            Ok(values) => self.squares.cut(&values.data),
            Err(error) => Encoded::Unread(Box::new(error)),
        }
    }
}
