//! From a picture to what a model reads.

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_image::{ImageError, ReadOptions, Reader};
use isovec_model::pictures;

use super::Picture;
use super::picture::Content;
use crate::error::{Error, Result};
use crate::model::encoded::Encoded;
use crate::model::frame::{self, Frame};

/// The file that says how pixels become a model's values.
const PREPROCESSOR: &str = "preprocessor_config.json";

/// Reads pictures for one model.
#[derive(Debug)]
pub(crate) struct PictureReader {
    reader: Reader,
    pub(crate) frame: Frame,
}

impl PictureReader {
    /// Reads `preprocessor_config.json`, and checks that it makes what the model reads.
    ///
    /// # Errors
    /// As [`frame::input`]; [`EngineError::MissingFile`] without the file; [`Error::Preprocessor`] for one that cannot be
    /// followed, or that makes other pictures than the model reads.
    pub(crate) fn read(bundle: &mut ModelBundle, options: &ReadOptions) -> Result<Self> {
        let origin = bundle.origin.clone();
        let refused = |source: ImageError| Error::Preprocessor {
            origin: origin.clone(),
            source: Box::new(source),
        };
        let input = frame::input(bundle)?;
        let file = bundle.files.get(PREPROCESSOR).ok_or_else(|| EngineError::MissingFile {
            origin: origin.clone(),
            file: PREPROCESSOR.into(),
            hint: "It says how pixels become the model's input; its publisher has it beside config.json".into(),
        })?;
        let config = bundle.files.get("config.json").map(|file| &file[..]);
        let reader = Reader::new(file, config, options);
        let reader = reader.map_err(refused)?;
        let (height, width) = reader.size();
        if !input.takes((height, width)) {
            return Err(refused(ImageError::Config(format!(
                "preprocessor_config.json: it makes an input of {width} x {height} pixels, and the model reads {input}"
            ))));
        }
        pictures::fix_extents(bundle, reader.size())?;
        let frame = Frame::new(bundle, reader.size(), reader.identity())?;
        Ok(Self { reader, frame })
    }

    /// Decodes a picture, makes its pixels ready, and brings them into the model's form.
    pub(crate) fn encode(&self, picture: &Picture) -> Encoded {
        let values = match picture.content() {
            Content::File(file) => self.reader.file(file),
            Content::Pixels(image) => self.reader.image(image.view()),
        };
        match values {
            Ok(values) => self.frame.encode(values.data),
            Err(error) => Encoded::Unread(Box::new(error)),
        }
    }
}
