//! Pictures get labels.

use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use isovec_engine::maybe_send::BoxFuture;

use super::Picture;
use crate::batcher::DynamicBatcher;
use crate::classifier::{Classifications, Classified, ClassifyOptions, Label, Labelling};
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::reader::Input;
use crate::model::{self, Model, Output};
use crate::source::ModelSource;
use crate::stream;

/// A loaded model that gives pictures labels with scores. Clones are cheap and share the model.
///
/// It loads and runs as an [`ImageEmbedder`](crate::ImageEmbedder) does. Models of the classes `ViTForImageClassification`,
/// `DeiTForImageClassification` and `DeiTForImageClassificationWithTeacher` are read from safetensors; ResNet, MobileNet,
/// EfficientNet, ConvNeXt and others from ONNX files that read one whole picture and give a number for each label. `id2label` in
/// `config.json` names the labels.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{ImageClassifier, Picture};
///
/// let classifier = ImageClassifier::load("google/vit-base-patch16-224").await?;
/// for label in classifier.classify_one(Picture::open("dog.png")?).await?.iter().take(5) {
///     println!("{:.3} {}", label.score, label.label);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ImageClassifier {
    pub(crate) model: Arc<Model>,
}

/// Loads a classifier of pictures; from [`ImageClassifier::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig), and pictures are read as Pillow and transformers read them.
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct ImageClassifierBuilder {
    pub(crate) loading: Loading,
    pub(crate) pixels: isovec_image::ReadOptions,
}

ask_for_pixels!(ImageClassifierBuilder);

impl ImageClassifierBuilder {
    /// Loads the model: finds its files, reads how pictures are made ready, leaves the logits as its one output, and hands it to
    /// an engine.
    ///
    /// # Errors
    /// As [`ImageEmbedderBuilder::load`](crate::ImageEmbedderBuilder::load); [`Error::Config`] for a pooling, a normalisation or
    /// a dimension, which labels do not have; `UnsupportedModel` for a model that gives no number for each label.
    pub fn load(self) -> BoxFuture<'static, Result<ImageClassifier>> {
        Box::pin(async move {
            let input = Input::Pictures(self.pixels);
            let model = model::load_for(self.loading.asked(), Output::Labels, input).await?;
            Ok(ImageClassifier {
                model: Arc::new(model),
            })
        })
    }
}

impl ImageClassifier {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`ImageClassifierBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> BoxFuture<'static, Result<Self>> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, pixels, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> ImageClassifierBuilder {
        ImageClassifierBuilder::new(source)
    }

    /// The names of the labels, in the order of [`Classifications::scores`].
    pub fn labels(&self) -> &[String] {
        self.model.label_names()
    }

    /// Classifies pictures, in their order. An empty list gives an empty set. Decoding is shared between threads, and no more
    /// than a few dozen pictures are decoded at a time.
    ///
    /// # Errors
    /// [`Picture`](Error::Picture) names the picture that cannot be read, and [`NotFinite`](Error::NotFinite) the one whose
    /// scores are broken; [`Engine`](Error::Engine) for failures of the engine.
    pub fn classify<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.classify_with(pictures, ClassifyOptions::default())
    }

    /// Classifies pictures with options of the call.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_with<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        let pictures: Vec<Picture> = pictures.into_iter().map(Into::into).collect();
        Box::pin(Arc::clone(&self.model).call::<Labelling, _>(pictures, options))
    }

    /// The labels of one picture, the highest score first.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_one(
        &self,
        picture: impl Into<Picture>,
    ) -> BoxFuture<'static, Result<Vec<Label>>> {
        let said = self.classify([picture]);
        Box::pin(async move { Ok(said.await?.ranked(0).unwrap_or_default()) })
    }

    /// Classifies a stream of any length in flat memory: results in order, one a picture. A picture that cannot be read gives an
    /// error in its place, and the stream goes on.
    pub fn try_classify_stream<S, P, E>(
        &self,
        pictures: S,
        options: ClassifyOptions,
    ) -> impl Stream<Item = Result<Classified, E>> + use<S, P, E>
    where
        S: Stream<Item = Result<P, E>>,
        P: Into<Picture>,
        E: From<Error>,
    {
        let pictures = pictures.map(|picture| picture.map(Into::into));
        let model = Arc::clone(&self.model);
        stream::rows::<Labelling, _, Picture, E>(model, pictures, options, None)
    }

    /// A batcher that joins the calls of many tasks, with a queue of its own; see [`DynamicBatcher`].
    pub fn batcher(&self) -> DynamicBatcher<Self> {
        DynamicBatcher::over(Arc::clone(&self.model))
    }
}

impl DynamicBatcher<ImageClassifier> {
    /// Classifies pictures together with those of other callers, in their order.
    ///
    /// # Errors
    /// As [`ImageClassifier::classify`], and [`Error::Overloaded`] and [`Error::ShutDown`].
    pub fn classify<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.classify_with(pictures, ClassifyOptions::default())
    }

    /// The same with options of the call. Calls with different options run together all the same.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_with<P: Into<Picture>>(
        &self,
        pictures: impl IntoIterator<Item = P>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        let pictures: Vec<Picture> = pictures.into_iter().map(Into::into).collect();
        self.call::<Labelling, _>(pictures, options)
    }
}

describe_model!(ImageClassifier);
