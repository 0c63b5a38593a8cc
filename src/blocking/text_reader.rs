//! The blocking reader of text in pictures.

use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::ProviderInfo;

use crate::backend;
use crate::error::Result;
use crate::loading::Loading;
use crate::pictures::Picture;
use crate::reading::asking::{Asking, ask_for_text};
use crate::source::ModelSource;
use crate::{PictureText, ReadingOptions};

/// Loads the networks that read text while the caller blocks; from [`TextReader::builder`]. Options that are not set are as in
/// [`isovec::TextReaderBuilder`](crate::TextReaderBuilder).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct TextReaderBuilder {
    loading: Loading,
    asking: Asking,
}

ask_for_text!(TextReaderBuilder);

impl TextReaderBuilder {
    /// Loads the networks; see [`isovec::TextReaderBuilder::load`](crate::TextReaderBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<TextReader> {
        let builder = crate::TextReaderBuilder {
            loading: self.loading,
            asking: self.asking,
        };
        backend::wait(builder.load()).map(TextReader)
    }
}

/// Reads the text of pictures while the caller waits; see [`isovec::TextReader`](crate::TextReader), into which it converts. Clones
/// are cheap and share the networks.
#[derive(Debug, Clone)]
pub struct TextReader(crate::TextReader);

impl TextReader {
    /// Loads the networks with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`TextReaderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).load()
    }

    /// Options of loading: files, device, configuration, scores, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> TextReaderBuilder {
        TextReaderBuilder::new(source)
    }

    /// Reads pictures, one after another, in their order.
    ///
    /// # Errors
    /// As [`isovec::TextReader::read`](crate::TextReader::read).
    pub fn read(&self, pictures: &[Picture]) -> Result<Vec<PictureText>> {
        backend::wait(self.0.read(pictures.iter().cloned()))
    }

    /// Reads pictures, with options.
    ///
    /// # Errors
    /// As [`isovec::TextReader::read_with`](crate::TextReader::read_with).
    pub fn read_with(
        &self,
        pictures: &[Picture],
        options: ReadingOptions,
    ) -> Result<Vec<PictureText>> {
        backend::wait(self.0.read_with(pictures.iter().cloned(), options))
    }

    /// Reads one picture.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_one(&self, picture: impl Into<Picture>) -> Result<PictureText> {
        backend::wait(self.0.read_one(picture))
    }

    /// The model's name: the id, folder or name that it was loaded by.
    pub fn model_name(&self) -> &str {
        self.0.model_name()
    }

    /// The provider that really computes the detector, which takes most of the time.
    pub fn provider(&self) -> &ProviderInfo {
        self.0.provider()
    }

    /// The value in effect of each knob, with the reason. Where networks differ, it is the detector's.
    pub fn effective_config(&self) -> &EffectiveConfig {
        self.0.effective_config()
    }
}

impl From<crate::TextReader> for TextReader {
    fn from(reader: crate::TextReader) -> Self {
        Self(reader)
    }
}

impl From<TextReader> for crate::TextReader {
    fn from(reader: TextReader) -> Self {
        reader.0
    }
}
