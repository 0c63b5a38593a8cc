//! What a server is asked to serve.

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "image")]
use isovec::ImageEmbedder;
use isovec::inspect::weights_bytes;
use isovec::{
    BoxFuture, Classifier, Embedder, EmbeddingConfig, ModelSource, ModelTask, MultiVectorEmbedder,
    OnProgress, Progress, Reranker, SparseEmbedder,
};

use crate::model::Model;
use crate::served::public_name;

/// Pixels of a picture, at most: decoding takes up to 16 bytes for each of them, and a small file may have many.
#[cfg(feature = "image")]
const MOST_PIXELS: u64 = 16_000_000;

/// A model that a server is to load, and how.
///
/// ```
/// use isovec::{Dtype, EmbeddingConfig, models};
/// use isovec_serve::ModelSpec;
///
/// let small = EmbeddingConfig::default().with_dtype(Dtype::Int8);
/// let spec = ModelSpec::new(models::ALL_MINILM_L6_V2).with_name("minilm").with_config(small);
/// assert_eq!(spec.name(), "minilm");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelSpec {
    /// Where its files are.
    pub source: ModelSource,
    /// As requests name it. `None`: its id, or the name of its folder.
    pub name: Option<String>,
    /// Other names that requests may use for it.
    pub aliases: Vec<String>,
    /// What it is for. `None`: what [`ModelTask::of`] finds in its files.
    pub task: Option<ModelTask>,
    /// How it is loaded.
    pub config: EmbeddingConfig,
    /// Whether the server loads it by itself. If not, it waits for a request to load it, which
    /// [`ServeOptions::model_control`](crate::ServeOptions::model_control) has to allow.
    pub loaded: bool,
    watch: Watch,
}

/// Who watches a load. It changes nothing of what is loaded.
#[derive(Clone, Default)]
struct Watch(Option<Arc<dyn OnProgress>>);

impl PartialEq for Watch {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.0.is_some())
    }
}

impl ModelSpec {
    /// A model under its own name, with the default configuration.
    pub fn new(source: impl Into<ModelSource>) -> Self {
        Self {
            source: source.into(),
            name: None,
            aliases: Vec::new(),
            task: None,
            config: EmbeddingConfig::default(),
            loaded: true,
            watch: Watch::default(),
        }
    }

    /// Sets the name that requests use.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a name that requests may use besides.
    #[must_use]
    pub fn with_alias(mut self, alias: impl Into<String>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// Says what the model is for.
    #[must_use]
    pub fn with_task(mut self, task: ModelTask) -> Self {
        self.task = Some(task);
        self
    }

    /// Sets how it is loaded.
    #[must_use]
    pub fn with_config(mut self, config: EmbeddingConfig) -> Self {
        self.config = config;
        self
    }

    /// Says whether the server loads it by itself.
    #[must_use]
    pub fn with_loaded(mut self, loaded: bool) -> Self {
        self.loaded = loaded;
        self
    }

    /// Reports how far loading has come.
    #[must_use]
    pub fn with_progress(mut self, progress: impl OnProgress + 'static) -> Self {
        self.watch = Watch(Some(Arc::new(progress)));
        self
    }

    /// The name that requests use.
    pub fn name(&self) -> String {
        let own = || public_name(&self.source.to_string());
        self.name.clone().unwrap_or_else(own)
    }

    /// Whether requests mean it by this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name() == name || self.aliases.iter().any(|alias| alias == name)
    }

    /// Whether both are the same model, loaded in the same way; whoever loads it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.clone().with_loaded(true) == other.clone().with_loaded(true)
    }

    async fn task(&self) -> isovec::Result<ModelTask> {
        match self.task {
            Some(task) => Ok(task),
            None => ModelTask::of(self.source.clone(), &self.config).await,
        }
    }

    /// Bytes of the weights in the model's files, which are looked at and not loaded.
    ///
    /// # Errors
    /// Those of [`weights_bytes`].
    pub(crate) async fn weights_bytes(&self) -> isovec::Result<u64> {
        let task = self.task().await?;
        weights_bytes(self.source.clone(), task, &self.config).await
    }

    /// Loads the model.
    ///
    /// # Errors
    /// Those of [`ModelTask::of`] and of the model's handle.
    pub fn load(&self) -> BoxFuture<'static, isovec::Result<Model>> {
        let spec = self.clone();
        Box::pin(async move {
            let task = spec.task().await?;
            let (source, config, watch) = (spec.source, spec.config, spec.watch.0);
            let progress = move |step: Progress| {
                if let Some(report) = &watch {
                    report(step);
                }
            };
            Ok(match task {
                ModelTask::Rerank => {
                    let builder = Reranker::builder(source).config(config);
                    builder.progress(progress).load().await?.into()
                }
                ModelTask::Classify => {
                    let builder = Classifier::builder(source).config(config);
                    builder.progress(progress).load().await?.into()
                }
                ModelTask::Sparse => {
                    let builder = SparseEmbedder::builder(source).config(config);
                    builder.progress(progress).load().await?.into()
                }
                ModelTask::MultiVector => {
                    let builder = MultiVectorEmbedder::builder(source).config(config);
                    builder.progress(progress).load().await?.into()
                }
                #[cfg(feature = "image")]
                ModelTask::EmbedImages => {
                    let decoding = isovec::image::DecodeOptions {
                        max_pixels: MOST_PIXELS,
                        ..isovec::image::DecodeOptions::default()
                    };
                    let builder = ImageEmbedder::builder(source).config(config);
                    let builder = builder.decoding(decoding).progress(progress);
                    builder.load().await?.into()
                }
                #[cfg(not(feature = "image"))]
                ModelTask::EmbedImages => {
                    let message = "pictures need a program that was built with the feature image";
                    return Err(isovec::Error::Config(vec![message.to_owned()]));
                }
                _ => {
                    let builder = Embedder::builder(source).config(config);
                    builder.progress(progress).load().await?.into()
                }
            })
        })
    }
}
