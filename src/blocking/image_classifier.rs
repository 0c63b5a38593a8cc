//! The blocking classifier of pictures.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::backend;
use crate::classifier::{Classifications, Classified, ClassifyOptions, Label, Labelling};
use crate::error::{Error, Result};
use crate::loading::Loading;
use crate::model::Model;
use crate::pictures::Picture;
use crate::source::ModelSource;

/// Loads a classifier of pictures while the caller blocks; from [`ImageClassifier::builder`]. Options that are not set are as in
/// [`isovec::ImageClassifierBuilder`](crate::ImageClassifierBuilder).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct ImageClassifierBuilder {
    loading: Loading,
    pixels: isovec_image::ReadOptions,
}

ask_for_pixels!(ImageClassifierBuilder);

impl ImageClassifierBuilder {
    /// Loads the model; see [`isovec::ImageClassifierBuilder::load`](crate::ImageClassifierBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<ImageClassifier> {
        let builder = crate::ImageClassifierBuilder {
            loading: self.loading,
            pixels: self.pixels,
        };
        backend::wait(builder.load()).map(ImageClassifier::from)
    }
}

/// A loaded model that gives pictures labels while the caller waits; see
/// [`isovec::ImageClassifier`](crate::ImageClassifier), into which it converts. Clones are cheap and share the model.
#[derive(Debug, Clone)]
pub struct ImageClassifier {
    model: Arc<Model>,
}

impl ImageClassifier {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`ImageClassifierBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
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

    /// Classifies pictures, in their order.
    ///
    /// # Errors
    /// As [`isovec::ImageClassifier::classify`](crate::ImageClassifier::classify).
    pub fn classify(&self, pictures: &[Picture]) -> Result<Classifications> {
        self.classify_with(pictures, &ClassifyOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_with(
        &self,
        pictures: &[Picture],
        options: &ClassifyOptions,
    ) -> Result<Classifications> {
        self.model.call_blocking::<Labelling, _>(pictures, options)
    }

    /// The labels of one picture, the highest score first.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_one(&self, picture: impl Into<Picture>) -> Result<Vec<Label>> {
        let said = self.classify(&[picture.into()])?;
        Ok(said.ranked(0).unwrap_or_default())
    }

    /// Classifies any number of pictures in flat memory: results in order, one a picture. One that cannot be read gives an error
    /// in its place; see [`isovec::ImageClassifier::try_classify_stream`](crate::ImageClassifier::try_classify_stream).
    pub fn try_classify_iter<I, P, E>(
        &self,
        pictures: I,
        options: ClassifyOptions,
    ) -> impl Iterator<Item = Result<Classified, E>> + use<I, P, E>
    where
        I: IntoIterator<Item = Result<P, E>>,
        P: Into<Picture>,
        E: From<Error>,
    {
        let classifier = crate::ImageClassifier::from(self.clone());
        let pictures = stream::iter(pictures);
        let mut results = Box::pin(classifier.try_classify_stream(pictures, options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(ImageClassifier);

impl From<crate::ImageClassifier> for ImageClassifier {
    fn from(classifier: crate::ImageClassifier) -> Self {
        Self {
            model: classifier.model,
        }
    }
}

impl From<ImageClassifier> for crate::ImageClassifier {
    fn from(classifier: ImageClassifier) -> Self {
        Self {
            model: classifier.model,
        }
    }
}
