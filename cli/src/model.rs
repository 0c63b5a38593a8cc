//! From the command line's model options to a loaded model.

use std::path::PathBuf;

use isovec::blocking::{Classifier, Embedder, MultiVectorEmbedder, Reranker, SparseEmbedder};
use isovec::config::EngineChoice;
use isovec::profile::{ProfileOptions, ProfileSession};
use isovec::stats::Stats;
use isovec::{Cancel, Dtype, EmbeddingConfig, ModelSource, OnProgress, Progress, models};

use crate::args::{DtypeArg, EngineArg, KnobArgs, ModelArgs};
use crate::error::{CliError, Result};
use crate::{config, progress};

/// What a model is loaded as.
pub(crate) trait Handle: Sized {
    /// Loads it, showing a download's progress on a terminal.
    fn open(
        source: ModelSource,
        config: EmbeddingConfig,
        cancel: Cancel,
    ) -> Result<Self, isovec::Error>;

    /// Begins a profile.
    fn record(&self, options: ProfileOptions) -> Result<ProfileSession, isovec::Error>;

    /// What was counted.
    fn stats(&self) -> Stats;

    /// What really computes it.
    fn provider(&self) -> String;

    /// The id of its fingerprint.
    fn fingerprint(&self) -> String;
}

macro_rules! handle {
    ($handle:ty) => {
        impl Handle for $handle {
            fn open(
                source: ModelSource,
                config: EmbeddingConfig,
                cancel: Cancel,
            ) -> Result<Self, isovec::Error> {
                let builder = Self::builder(source).config(config);
                builder.progress(bar()).cancel(cancel).load()
            }

            fn record(&self, options: ProfileOptions) -> Result<ProfileSession, isovec::Error> {
                self.profile(options)
            }

            fn stats(&self) -> Stats {
                <$handle>::stats(self)
            }

            fn provider(&self) -> String {
                <$handle>::provider(self).to_string()
            }

            fn fingerprint(&self) -> String {
                <$handle>::fingerprint(self).id()
            }
        }
    };
}

handle!(Embedder);
handle!(Classifier);
handle!(Reranker);
handle!(SparseEmbedder);
handle!(MultiVectorEmbedder);
#[cfg(feature = "image")]
handle!(isovec::blocking::ImageEmbedder);
#[cfg(feature = "image")]
handle!(isovec::blocking::ImageClassifier);

/// The model named, or the default one: where set-up put it, else the hub's.
pub(crate) fn source(model: Option<&str>) -> ModelSource {
    if let Some(model) = model {
        return ModelSource::from(model);
    }
    let folder: Option<PathBuf> =
        isovec::cache_dir().map(|cache| cache.join("models/all-MiniLM-L6-v2"));
    match folder.filter(|folder| folder.join("config.json").is_file()) {
        Some(folder) => ModelSource::from(folder),
        None => ModelSource::from(models::ALL_MINILM_L6_V2),
    }
}

impl KnobArgs {
    /// The configuration that the preset, the file and the options ask for, in this order.
    pub(crate) fn embedding_config(&self) -> Result<EmbeddingConfig> {
        let mut config = config::read(self.preset, self.config.as_deref())?;
        if let Some(engine) = self.engine {
            config = config.with_engine(match engine {
                EngineArg::Auto => EngineChoice::Auto,
                EngineArg::Onnxruntime => EngineChoice::OnnxRuntime,
                EngineArg::Portable => EngineChoice::Portable,
            });
        }
        if let Some(threads) = self.threads {
            config = config.with_intra_op_threads(threads);
        }
        if let Some(tokens) = self.max_length {
            config = config.with_max_length(tokens);
        }
        if let Some(dimension) = self.dimension {
            config = config.with_dimension(dimension);
        }
        if let Some(dtype) = self.dtype {
            config = config.with_dtype(match dtype {
                DtypeArg::Auto => Dtype::Auto,
                DtypeArg::F32 => Dtype::F32,
                DtypeArg::F16 => Dtype::F16,
                DtypeArg::Bf16 => Dtype::Bf16,
                DtypeArg::Int8 => Dtype::Int8,
                DtypeArg::Int8Fast => Dtype::Int8Fast,
                DtypeArg::Int4 => {
                    let made = "--dtype int4 is of export alone: it takes too long for each load. Use int8, or make a model in 4 bits once, \
                        with isovec export --dtype int4 or isovec optimize --int4";
                    return Err(CliError::Usage(made.into()));
                }
            });
        }
        if let Some(revision) = &self.revision {
            config = config.with_revision(revision);
        }
        // Left alone otherwise, so that HF_HUB_OFFLINE still speaks.
        if self.offline {
            config = config.with_offline(true);
        }
        if self.verify_weights {
            config = config.with_verify(true);
        }
        config.build().map_err(|error| self.failed(error))
    }

    /// Tells a configuration that cannot work from a model that cannot be loaded.
    pub(crate) fn failed(&self, error: isovec::Error) -> CliError {
        match &self.config {
            _ if error.is_cancelled() => CliError::Interrupted("no model was loaded".into()),
            _ if error.kind() != "Config" => CliError::Model(error),
            Some(path) => CliError::Usage(format!("{}: {error}", path.display())),
            None => CliError::Usage(error.to_string()),
        }
    }
}

impl ModelArgs {
    /// The model named, or the default one.
    pub(crate) fn source(&self) -> ModelSource {
        source(self.model.as_deref())
    }

    /// The configuration that the preset, the file and the options ask for, in this order.
    pub(crate) fn embedding_config(&self) -> Result<EmbeddingConfig> {
        self.knobs.embedding_config()
    }

    /// Loads the model, showing a download's progress on a terminal.
    pub(crate) fn load<H: Handle>(&self, cancel: &Cancel) -> Result<H> {
        self.load_as(self.embedding_config()?, cancel)
    }

    /// The same under a configuration of the caller's.
    pub(crate) fn load_as<H: Handle>(&self, config: EmbeddingConfig, cancel: &Cancel) -> Result<H> {
        H::open(self.source(), config, cancel.clone()).map_err(|error| self.failed(error))
    }

    /// The same options for a reranker beside an embedder: what concerns texts is each model's own.
    pub(crate) fn of_reranker(&self, model: &str) -> Self {
        Self {
            model: Some(model.to_owned()),
            knobs: KnobArgs {
                max_length: None,
                dimension: None,
                ..self.knobs.clone()
            },
        }
    }

    /// Tells a configuration that cannot work from a model that cannot be loaded.
    pub(crate) fn failed(&self, error: isovec::Error) -> CliError {
        self.knobs.failed(error)
    }
}

/// Progress on a terminal.
pub(crate) fn bar() -> impl OnProgress + 'static {
    let bar = progress::bytes();
    move |step| match step {
        Progress::Downloading { file, bytes, total } => {
            bar.set_length(total);
            bar.set_position(bytes);
            bar.set_message(file);
        }
        _ => bar.finish_and_clear(),
    }
}
