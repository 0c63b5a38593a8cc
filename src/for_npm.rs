//! For the npm package, which fetches files itself.

use std::sync::Arc;

use isovec_engine::cancel::Cancel;
use isovec_engine::maybe_send::BoxFuture;
pub use isovec_model::bundle::next_told;

use crate::batcher::{DynamicBatcher, QueueCounts};
use crate::classifier::{Classifications, ClassifyOptions, Labelling};
use crate::config::EmbeddingConfig;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::loading::Loading;
use crate::model::{self, EmbedOptions, Model, Output, Vectors};
use crate::source::ModelSource;

/// A model that was loaded for one task, and the queue that joins its calls. One handle for all tasks, because two would be
/// code that is the same twice, and every visitor of a page downloads it.
#[derive(Debug)]
pub struct Loaded {
    model: Arc<Model>,
    queue: DynamicBatcher<Self>,
}

impl Loaded {
    /// Loads a model for labels, or for vectors.
    ///
    /// # Errors
    /// As [`ClassifierBuilder::load`](crate::ClassifierBuilder::load) and
    /// [`EmbedderBuilder::load`](crate::EmbedderBuilder::load).
    pub async fn load(
        source: ModelSource,
        config: EmbeddingConfig,
        cancel: Cancel,
        labels: bool,
    ) -> Result<Self> {
        let mut loading = Loading::new(source);
        loading.set_config(config);
        loading.watch().cancel = cancel;
        let output = match labels {
            true => Output::Labels,
            false => Output::Vectors,
        };
        let model = Arc::new(model::load(loading.asked(), output).await?);
        Ok(Self {
            queue: DynamicBatcher::over(Arc::clone(&model)),
            model,
        })
    }

    /// Embeds texts together with those of other calls.
    ///
    /// # Errors
    /// As [`DynamicBatcher::embed_with`].
    pub fn embed(
        &self,
        texts: Vec<String>,
        options: EmbedOptions,
    ) -> BoxFuture<'static, Result<Embeddings>> {
        self.queue.call::<Vectors, _>(texts, options)
    }

    /// Classifies texts together with those of other calls.
    ///
    /// # Errors
    /// As [`DynamicBatcher::classify_with`], and [`Error::Config`](crate::Error::Config) for a model that was loaded for vectors.
    pub fn classify(
        &self,
        texts: Vec<String>,
        options: ClassifyOptions,
    ) -> BoxFuture<'static, Result<Classifications>> {
        self.queue.call::<Labelling, _>(texts, options)
    }

    /// What waits, and what was done so far.
    pub fn counts(&self) -> QueueCounts {
        self.queue.counts()
    }

    /// The names of the labels; none where vectors are made.
    pub fn labels(&self) -> &[String] {
        self.model.label_names()
    }
}

describe_model!(Loaded);
describe_vectors!(Loaded);
