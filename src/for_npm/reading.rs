//! The reader of text in pictures.

use isovec_engine::cancel::Cancel;
use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::ProviderInfo;
use isovec_engine::maybe_send::BoxFuture;
use isovec_image::Image;
use serde::{Deserialize, Serialize};

use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::json;
use crate::reading::TextReader;
use crate::source::ModelSource;

/// What is asked of reading, as [`TextReaderBuilder`](crate::TextReaderBuilder) has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asking {
    /// The file of the network that finds lines.
    pub detector: String,
    /// The file of the network that finds lines which stand on their head; none where every line is taken to be upright.
    pub orientation: Option<String>,
    /// The file of the network that reads lines.
    pub recognizer: String,
    /// Lines with a lower score are left out, from 0 to 1.
    pub min_score: f64,
}

/// A loaded reader. Its pictures are decoded elsewhere.
#[derive(Debug)]
pub struct LoadedReader(TextReader);

impl LoadedReader {
    /// Loads the networks.
    ///
    /// # Errors
    /// As [`TextReaderBuilder::load`](crate::TextReaderBuilder::load).
    pub async fn load(
        source: ModelSource,
        config: EmbeddingConfig,
        cancel: Cancel,
        asking: Asking,
    ) -> Result<Self> {
        let builder = TextReader::builder(source)
            .config(config)
            .cancel(cancel)
            .detector(asking.detector)
            .recognizer(asking.recognizer)
            .min_score(asking.min_score);
        let builder = match asking.orientation {
            Some(file) => builder.orientation(file),
            None => builder.upright(),
        };
        Ok(Self(builder.load().await?))
    }

    /// The text of a picture: a [`PictureText`](crate::PictureText) as JSON. `place` is the picture's among the caller's, for errors.
    ///
    /// # Errors
    /// As [`TextReader::read`].
    pub fn read(
        &self,
        image: Image,
        place: usize,
        cancel: Cancel,
    ) -> BoxFuture<'static, Result<String>> {
        let read = self.0.read_pixels(image, cancel);
        Box::pin(async move {
            let text = read.await.map_err(|error| error.moved_by(place))?;
            Ok(json::text(&text))
        })
    }

    /// All facts about the reader, as JSON: provider, effective configuration, name.
    pub fn about(&self) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct About<'a> {
            provider: &'a ProviderInfo,
            effective_config: &'a EffectiveConfig,
            model: &'a str,
        }
        json::text(&About {
            provider: self.0.provider(),
            effective_config: self.0.effective_config(),
            model: self.0.model_name(),
        })
    }
}
