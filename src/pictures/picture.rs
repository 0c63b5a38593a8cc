//! A picture as callers hand it in.

use std::sync::Arc;

use bytes::Bytes;
use isovec_image::Image;

use crate::cache::{Key, Scope};
use crate::error::Result;
use crate::model::encoded::Encoded;
use crate::model::{Item, Model};

/// A picture: a file's bytes, or pixels. Clones are cheap and share them.
#[derive(Debug, Clone)]
pub struct Picture(Content);

#[derive(Debug, Clone)]
pub(super) enum Content {
    /// PNG, JPEG, WebP or GIF, decoded when it is embedded.
    File(Bytes),
    Pixels(Arc<Image>),
}

impl Picture {
    /// Reads a file. It is decoded when it is embedded, and its name says nothing of its format.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) names the file.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| crate::Error::io(path, error))?;
        Ok(bytes.into())
    }

    /// Its pixels.
    #[cfg(feature = "ocr")]
    pub(crate) fn decode(
        &self,
        options: &isovec_image::DecodeOptions,
    ) -> isovec_image::Result<Image> {
        match &self.0 {
            Content::File(file) => isovec_image::decode(file, options),
            Content::Pixels(image) => Ok((**image).clone()),
        }
    }

    pub(super) fn content(&self) -> &Content {
        &self.0
    }
}

impl From<Bytes> for Picture {
    /// A file's bytes.
    fn from(file: Bytes) -> Self {
        Self(Content::File(file))
    }
}

impl From<Vec<u8>> for Picture {
    /// A file's bytes.
    fn from(file: Vec<u8>) -> Self {
        Bytes::from(file).into()
    }
}

impl From<Image> for Picture {
    fn from(image: Image) -> Self {
        Self(Content::Pixels(Arc::new(image)))
    }
}

impl Item for Picture {
    type Owned = Self;

    // A picture of 224 pixels is 600 KB for the model, and may be a hundred times that before.
    const WINDOW: usize = 32;

    fn owned(&self) -> Self {
        self.clone()
    }

    fn bytes(&self) -> usize {
        match &self.0 {
            Content::File(file) => file.len(),
            Content::Pixels(image) => image.data().len(),
        }
    }

    fn key(&self, scope: &Scope, _prefix: &str, _lowercase: bool) -> Key {
        match &self.0 {
            Content::File(file) => scope.key_of_picture("file", file),
            Content::Pixels(image) => {
                let (width, height) = (image.width(), image.height());
                let kind = format!("{width} x {height}, {:?}", image.channels());
                scope.key_of_picture(&kind, image.data())
            }
        }
    }

    fn encode(model: &Model, items: &[Self], _prefix: &str) -> Result<Vec<Encoded>> {
        let reader = model.reader.pictures()?;
        Ok(items.iter().map(|picture| reader.encode(picture)).collect())
    }
}
