//! The blocking handle of a model that turns pictures into vectors.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::backend;
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::{EmbedOptions, Model, Vectors};
use crate::pictures::Picture;
use crate::source::ModelSource;
use crate::stream::{Embedded, StreamOptions};

/// Loads a model of pictures while the caller blocks; from [`ImageEmbedder::builder`]. Options that are not set are as in
/// [`isovec::ImageEmbedderBuilder`](crate::ImageEmbedderBuilder).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct ImageEmbedderBuilder {
    loading: Loading,
    pixels: isovec_image::ReadOptions,
}

ask_for_pixels!(ImageEmbedderBuilder);
ask_for_vectors!(ImageEmbedderBuilder);

impl ImageEmbedderBuilder {
    /// Loads the model; see [`isovec::ImageEmbedderBuilder::load`](crate::ImageEmbedderBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<ImageEmbedder> {
        let builder = crate::ImageEmbedderBuilder {
            loading: self.loading,
            pixels: self.pixels,
        };
        backend::wait(builder.load()).map(ImageEmbedder::from)
    }
}

/// A loaded model that turns pictures into vectors while the caller waits; see
/// [`isovec::ImageEmbedder`](crate::ImageEmbedder), into which it converts. Clones are cheap and share the model.
#[derive(Debug, Clone)]
pub struct ImageEmbedder {
    model: Arc<Model>,
}

impl ImageEmbedder {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`ImageEmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, dimension, configuration, pixels, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> ImageEmbedderBuilder {
        ImageEmbedderBuilder::new(source)
    }

    /// Embeds pictures: `[n, dim]` in their order.
    ///
    /// # Errors
    /// As [`isovec::ImageEmbedder::embed`](crate::ImageEmbedder::embed).
    pub fn embed(&self, pictures: &[Picture]) -> Result<Embeddings> {
        self.embed_with(pictures, &EmbedOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`isovec::ImageEmbedder::embed_with`](crate::ImageEmbedder::embed_with).
    pub fn embed_with(&self, pictures: &[Picture], options: &EmbedOptions) -> Result<Embeddings> {
        self.model.call_blocking::<Vectors, _>(pictures, options)
    }

    /// Embeds any number of pictures in flat memory: results in order, one a picture. One that cannot be read gives an error
    /// in its place; see [`isovec::ImageEmbedder::try_embed_stream`](crate::ImageEmbedder::try_embed_stream).
    pub fn try_embed_iter<I, P, E>(
        &self,
        pictures: I,
        options: StreamOptions,
    ) -> impl Iterator<Item = Result<Embedded, E>> + use<I, P, E>
    where
        I: IntoIterator<Item = Result<P, E>>,
        P: Into<Picture>,
        E: From<Error>,
    {
        let embedder = crate::ImageEmbedder::from(self.clone());
        let pictures = stream::iter(pictures);
        let mut results = Box::pin(embedder.try_embed_stream(pictures, options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(ImageEmbedder);
describe_vectors!(ImageEmbedder);

impl From<crate::ImageEmbedder> for ImageEmbedder {
    fn from(embedder: crate::ImageEmbedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}

impl From<ImageEmbedder> for crate::ImageEmbedder {
    fn from(embedder: ImageEmbedder) -> Self {
        Self {
            model: embedder.model,
        }
    }
}
