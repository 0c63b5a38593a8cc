//! A model of pictures as it is compared: by its vectors, or by the logits of a classifier.

use isovec_engine::cancel::Cancel;
use isovec_engine::fingerprint::Fingerprint;
use isovec_engine::maybe_send::BoxFuture;

use super::OptimizeOptions;
use super::pictures::{asked_output, purpose};
use crate::backend;
use crate::classifier::{ClassifyOptions, Scores};
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::frame;
use crate::model::{EmbedOptions, Output, open, resolve};
use crate::pictures::{ImageClassifier, ImageEmbedder, Picture};
use crate::source::ModelSource;

/// A loaded model of pictures, for whoever compares it with another as [`optimize`](crate::optimize()) does: of each picture it gives
/// a row, its vector or the logits of a classifier. Vectors that the configuration would keep are not kept.
#[derive(Debug, Clone)]
pub struct PictureRows(Task);

#[derive(Debug, Clone)]
enum Task {
    Vectors(ImageEmbedder),
    Logits(ImageClassifier),
}

impl PictureRows {
    /// Loads an original.
    ///
    /// # Errors
    /// Those of [`optimize`](crate::optimize()) for a model that reads no pictures, or that cannot give what is asked for; those of
    /// loading.
    pub async fn load(
        source: impl Into<ModelSource>,
        config: &EmbeddingConfig,
        options: &OptimizeOptions,
    ) -> Result<Self> {
        let (config, cancel) = (config.clone().build()?, &options.watch.cancel);
        let (source, _) = resolve(source.into(), &config, &options.watch)
            .await?
            .split();
        let (files, settings, asked) = (source.clone(), config.clone(), options.clone());
        let output = backend::offload("opening the model", async move {
            let cancel = &asked.watch.cancel;
            let bundle = open(files, &settings, &purpose(Output::Vectors), cancel)?;
            frame::input(&bundle)?;
            asked_output(&bundle, &settings, &asked, cancel).await
        });
        let output = output.await?.unwrap_or(Output::Vectors);
        Self::of(source, &config, output, cancel).await
    }

    /// Loads a model that is compared with this one, such as one that was made of it.
    ///
    /// # Errors
    /// Those of loading.
    pub async fn load_like(
        &self,
        source: impl Into<ModelSource>,
        config: &EmbeddingConfig,
        cancel: &Cancel,
    ) -> Result<Self> {
        let output = match self.0 {
            Task::Vectors(_) => Output::Vectors,
            Task::Logits(_) => Output::AsFile,
        };
        Self::of(source.into(), config, output, cancel).await
    }

    /// Loads a model that gives this.
    pub(super) async fn of(
        source: ModelSource,
        config: &EmbeddingConfig,
        output: Output,
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut config = config.clone();
        // Kept vectors would answer for both.
        config.embedding_cache = EmbeddingConfig::default().embedding_cache;
        Ok(Self(match output {
            Output::AsFile => {
                let builder = ImageClassifier::builder(source).config(config);
                Task::Logits(builder.cancel(cancel.clone()).load().await?)
            }
            _ => {
                let builder = ImageEmbedder::builder(source).config(config);
                Task::Vectors(builder.cancel(cancel.clone()).load().await?)
            }
        }))
    }

    /// The rows of pictures, one after the other: as many values for each.
    ///
    /// # Errors
    /// Those of [`ImageEmbedder::embed`] and [`ImageClassifier::classify`].
    pub fn rows(
        &self,
        pictures: Vec<Picture>,
        cancel: &Cancel,
    ) -> BoxFuture<'static, Result<Vec<f32>>> {
        match &self.0 {
            Task::Vectors(embedder) => {
                let options = EmbedOptions::default().with_cancel(cancel.clone());
                let vectors = embedder.embed_with(pictures, options);
                Box::pin(async move { Ok(vectors.await?.into_vec()) })
            }
            Task::Logits(classifier) => {
                let options = ClassifyOptions::default()
                    .with_scores(Scores::Logits)
                    .with_cancel(cancel.clone());
                let said = classifier.classify_with(pictures, options);
                Box::pin(async move { Ok(said.await?.into_vec()) })
            }
        }
    }

    /// Says what its rows can be compared with.
    pub fn fingerprint(&self) -> &Fingerprint {
        match &self.0 {
            Task::Vectors(embedder) => embedder.fingerprint(),
            Task::Logits(classifier) => classifier.fingerprint(),
        }
    }
}
