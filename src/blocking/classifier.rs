//! The blocking classifier.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::backend;
use crate::classifier::{Classifications, Classified, ClassifyOptions, Label, Labelling};
use crate::error::Result;
use crate::loading::Loading;
use crate::model::{Model, Pair};
use crate::source::ModelSource;

/// Loads a classifier while the caller blocks; from [`Classifier::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct ClassifierBuilder {
    loading: Loading,
}

ask_for_model!(ClassifierBuilder);

impl ClassifierBuilder {
    /// Loads the model; see [`isovec::ClassifierBuilder::load`](crate::ClassifierBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<Classifier> {
        let builder = crate::ClassifierBuilder {
            loading: self.loading,
        };
        backend::wait(builder.load()).map(Classifier::from)
    }
}

/// A loaded model that gives texts labels while the caller waits; see [`isovec::Classifier`](crate::Classifier), into which it
/// converts. Clones are cheap and share the model.
#[derive(Debug, Clone)]
pub struct Classifier {
    model: Arc<Model>,
}

impl Classifier {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`ClassifierBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> ClassifierBuilder {
        ClassifierBuilder::new(source)
    }

    /// The names of the labels, in the order of [`Classifications::scores`].
    pub fn labels(&self) -> &[String] {
        self.model.label_names()
    }

    /// Classifies texts, in their order.
    ///
    /// # Errors
    /// As [`isovec::Classifier::classify`](crate::Classifier::classify).
    pub fn classify<T: AsRef<str> + Sync>(&self, texts: &[T]) -> Result<Classifications> {
        self.classify_with(texts, &ClassifyOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_with<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        options: &ClassifyOptions,
    ) -> Result<Classifications> {
        self.model.call_blocking::<Labelling, _>(texts, options)
    }

    /// Classifies pairs of texts that the model reads together.
    ///
    /// # Errors
    /// As [`isovec::Classifier::classify_pairs`](crate::Classifier::classify_pairs).
    pub fn classify_pairs<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> Result<Classifications> {
        self.classify_pairs_with(pairs, &ClassifyOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`classify_pairs`](Self::classify_pairs).
    pub fn classify_pairs_with<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
        options: &ClassifyOptions,
    ) -> Result<Classifications> {
        let pairs = Pair::all(pairs);
        self.model.call_blocking::<Labelling, _>(&pairs, options)
    }

    /// The labels of one text, the highest score first.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    pub fn classify_one(&self, text: impl AsRef<str>) -> Result<Vec<Label>> {
        let said = self.classify(&[text.as_ref()])?;
        Ok(said.ranked(0).unwrap_or_default())
    }

    /// Classifies any number of texts in flat memory: results in order, one a text; see
    /// [`isovec::Classifier::classify_stream`](crate::Classifier::classify_stream).
    pub fn classify_iter<I>(
        &self,
        texts: I,
        options: ClassifyOptions,
    ) -> impl Iterator<Item = Result<Classified>> + use<I>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let classifier = crate::Classifier::from(self.clone());
        let mut results = Box::pin(classifier.classify_stream(stream::iter(texts), options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(Classifier);

impl From<crate::Classifier> for Classifier {
    fn from(classifier: crate::Classifier) -> Self {
        Self {
            model: classifier.model,
        }
    }
}

impl From<Classifier> for crate::Classifier {
    fn from(classifier: Classifier) -> Self {
        Self {
            model: classifier.model,
        }
    }
}
