//! Pictures become vectors.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use isovec_engine::maybe_send::BoxFuture;

use super::Picture;
use crate::batcher::DynamicBatcher;
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::reader::Input;
use crate::model::{self, EmbedOptions, Model, Output, Vectors};
use crate::source::ModelSource;
use crate::stream::{self, Embedded, StreamOptions};

/// A loaded model that turns pictures into vectors: ViT, DeiT, DINO, the halves of CLIP and SigLIP for pictures, and from ONNX
/// files ResNet, MobileNet, EfficientNet, ConvNeXt and others that read whole pictures. Clones are cheap and share the model.
///
/// It loads and runs as an [`Embedder`](crate::Embedder) does: the same sources, configuration, engines, batches, cache,
/// statistics and profile. `preprocessor_config.json` beside the model decides how pixels become its input, with the bytes
/// that Pillow has; what it asks for and isovec does not know is refused by name.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{ImageEmbedder, Picture};
///
/// let embedder = ImageEmbedder::load("google/vit-base-patch16-224-in21k").await?;
/// let photos = ["beach.jpg", "dog.png"].map(Picture::open);
/// let index = embedder.embed(photos.into_iter().collect::<Result<Vec<_>, _>>()?).await?;
/// let query = embedder.embed([Picture::open("another-dog.webp")?]).await?;
/// println!("most like photo {}", index.search_one(&query, 1)?[0].index);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ImageEmbedder {
    pub(crate) model: Arc<Model>,
}

/// Loads a model of pictures; from [`ImageEmbedder::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig), and pictures are read as Pillow and transformers read them.
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct ImageEmbedderBuilder {
    pub(crate) loading: Loading,
    pub(crate) pixels: isovec_image::ReadOptions,
}

ask_for_pixels!(ImageEmbedderBuilder);
ask_for_vectors!(ImageEmbedderBuilder);

impl ImageEmbedderBuilder {
    /// Loads the model: finds its files (downloading them where the source is a model id that is not in the cache), reads
    /// how pictures are made ready, and hands the model to an engine.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) with all faults of the configuration;
    /// [`Error::Preprocessor`](crate::Error::Preprocessor) for a `preprocessor_config.json` that cannot be followed;
    /// [`Error::Engine`](crate::Error::Engine) for all else, such as a model that reads no pictures.
    pub fn load(self) -> BoxFuture<'static, Result<ImageEmbedder>> {
        Box::pin(async move {
            let input = Input::Pictures(self.pixels);
            let model = model::load_for(self.loading.asked(), Output::Vectors, input).await?;
            Ok(ImageEmbedder {
                model: Arc::new(model),
            })
        })
    }
}

impl ImageEmbedder {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`ImageEmbedderBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, dimension, configuration, pixels, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> ImageEmbedderBuilder {
        ImageEmbedderBuilder::new(source)
    }

    /// Embeds pictures: `[n, dim]` in their order. An empty list gives an empty set. Decoding is shared between threads, and
    /// no more than a few dozen pictures are decoded at a time.
    ///
    /// # Errors
    /// [`Picture`](crate::Error::Picture) names the picture that cannot be read, and
    /// [`NotFinite`](crate::Error::NotFinite) the one whose vector is broken;
    /// [`Engine`](crate::Error::Engine) for failures of the engine.
    pub fn embed<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(pictures, EmbedOptions::default())
    }

    /// Embeds pictures with options of the call: a dimension, unit length, a cancellation. Prompts are for texts: one that is
    /// named is not known.
    ///
    /// # Errors
    /// As [`embed`](Self::embed); [`Config`](crate::Error::Config) for a dimension or a length that the loaded model cannot
    /// give.
    pub fn embed_with<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let pictures: Vec<Picture> = pictures.into_iter().map(Into::into).collect();
        Box::pin(Arc::clone(&self.model).call::<Vectors, _>(pictures, options))
    }

    /// Embeds a stream of any length in flat memory: results in order, one a picture, as
    /// [`Embedder::try_embed_stream`](crate::Embedder::try_embed_stream) gives those of texts. A picture that cannot be read
    /// gives an error in its place, and the stream goes on.
    pub fn try_embed_stream<S, P, E>(
        &self,
        pictures: S,
        options: StreamOptions,
    ) -> impl Stream<Item = Result<Embedded, E>> + use<S, P, E>
    where
        S: Stream<Item = Result<P, E>>,
        P: Into<Picture>,
        E: From<Error>,
    {
        let pictures = pictures.map(|picture| picture.map(Into::into));
        let StreamOptions { embed, on_progress } = options;
        stream::rows::<Vectors, _, Picture, E>(
            Arc::clone(&self.model),
            pictures,
            embed,
            on_progress,
        )
    }

    /// The vector of one picture.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_one(&self, picture: impl Into<Picture>) -> BoxFuture<'static, Result<Vec<f32>>> {
        let embedding = self.embed([picture]);
        Box::pin(async move { Ok(embedding.await?.into_vec()) })
    }

    /// A batcher that joins the calls of many tasks, with a queue of its own; see [`DynamicBatcher`].
    pub fn batcher(&self) -> DynamicBatcher<Self> {
        DynamicBatcher::over(Arc::clone(&self.model))
    }
}

impl DynamicBatcher<ImageEmbedder> {
    /// Embeds pictures together with those of other callers: `[n, dim]` in their order.
    ///
    /// # Errors
    /// As [`ImageEmbedder::embed`], and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn embed<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.embed_with(pictures, EmbedOptions::default())
    }

    /// The same with options of the call. Calls with different options run together all the same.
    ///
    /// # Errors
    /// As [`embed`](Self::embed).
    pub fn embed_with<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        let pictures: Vec<Picture> = pictures.into_iter().map(Into::into).collect();
        self.call::<Vectors, _>(pictures, options)
    }
}

describe_model!(ImageEmbedder);
describe_vectors!(ImageEmbedder);
