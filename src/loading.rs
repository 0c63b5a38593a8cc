//! The builder that loads a model from a source.

use std::sync::Arc;

use isovec_engine::maybe_send::BoxFuture;

use crate::config::{Device, EmbeddingConfig};
use crate::embedder::Embedder;
use crate::error::Result;
use crate::model::{self, Output, Watch};
use crate::source::ModelSource;

/// A model that is to be loaded, and how.
#[derive(Debug, Clone)]
pub(crate) struct Loading {
    source: ModelSource,
    config: EmbeddingConfig,
    device: Option<Device>,
    watch: Watch,
}

/// A model that is to be loaded, as whoever loads it takes it.
pub(crate) struct Asked {
    pub(crate) source: ModelSource,
    pub(crate) config: EmbeddingConfig,
    pub(crate) watch: Watch,
}

impl Loading {
    pub(crate) fn new(source: ModelSource) -> Self {
        Self {
            source,
            config: EmbeddingConfig::default(),
            device: None,
            watch: Watch::default(),
        }
    }

    pub(crate) fn set_config(&mut self, config: EmbeddingConfig) {
        self.config = config;
        self.device = None;
    }

    pub(crate) fn set_device(&mut self, device: Device) {
        self.device = Some(device);
    }

    pub(crate) fn knobs(&mut self) -> &mut EmbeddingConfig {
        &mut self.config
    }

    pub(crate) fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// What all calls come to.
    pub(crate) fn asked(self) -> Asked {
        let config = match self.device {
            Some(device) => device.set(self.config),
            None => self.config,
        };
        Asked {
            source: self.source,
            config,
            watch: self.watch,
        }
    }
}

/// What the builders of all handles ask for, written once.
macro_rules! ask_for_model {
    ($builder:ty $(, $own:ident)*) => {
        impl $builder {
            pub(crate) fn new(source: impl Into<crate::ModelSource>) -> Self {
                Self {
                    loading: crate::loading::Loading::new(source.into()),
                    $($own: Default::default(),)*
                }
            }

            /// Takes this configuration instead of everything that earlier calls said, except
            /// progress and cancellation. Call it first: later calls go over it.
            pub fn config(mut self, config: crate::EmbeddingConfig) -> Self {
                self.loading.set_config(config);
                self
            }

            /// Chooses the device. The last call wins, whether it is this one or [`config`](Self::config). An
            /// unavailable device is not an error: the loaded model's `effective_config` has the device in effect,
            /// and the reason.
            pub fn device(mut self, device: crate::Device) -> Self {
                self.loading.set_device(device);
                self
            }

            /// Sets how the weights are stored (`model.dtype`).
            pub fn dtype(mut self, dtype: crate::Dtype) -> Self {
                self.loading.knobs().model.dtype = Some(dtype);
                self
            }

            /// Sets how many tokens of a text the model sees (`text.max_length`).
            pub fn max_length(mut self, tokens: usize) -> Self {
                self.loading.knobs().text.max_length = Some(tokens);
                self
            }

            /// Pins a branch, tag or commit of the model (`hub.revision`).
            pub fn revision(mut self, revision: impl Into<String>) -> Self {
                self.loading.knobs().hub.revision = Some(revision.into());
                self
            }

            /// Sets the folder of the cache for downloaded models (`hub.cache_dir`).
            pub fn cache_dir(mut self, folder: impl Into<std::path::PathBuf>) -> Self {
                self.loading.knobs().hub.cache_dir = Some(folder.into());
                self
            }

            /// Sets whether the network is left alone (`hub.offline`).
            pub fn offline(mut self, offline: bool) -> Self {
                self.loading.knobs().hub.offline = Some(offline);
                self
            }

            /// Reports how far loading has come.
            pub fn progress(mut self, progress: impl crate::OnProgress + 'static) -> Self {
                self.loading.watch().progress = Some(std::sync::Arc::new(progress));
                self
            }

            /// Stops loading when `cancel` is cancelled.
            pub fn cancel(mut self, cancel: crate::Cancel) -> Self {
                self.loading.watch().cancel = cancel;
                self
            }
        }
    };
}

/// What the builders of embedders ask for besides.
macro_rules! ask_for_vectors {
    ($builder:ty) => {
        impl $builder {
            /// Keeps only the first components of every vector (`text.dimension`). A call can keep
            /// fewer: [`EmbedOptions::with_dimension`](crate::EmbedOptions::with_dimension).
            pub fn dimension(mut self, dimension: usize) -> Self {
                self.loading.knobs().text.dimension = Some(dimension);
                self
            }
        }
    };
}

/// Loads a model; from [`Embedder::builder`]. Options that are not set are as in [`EmbeddingConfig::default`].
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{Device, Dtype, Embedder, models};
///
/// let embedder = Embedder::builder(models::ALL_MINILM_L6_V2)
///     .device(Device::Gpu)
///     .dtype(Dtype::Int8)
///     .load()
///     .await?;
/// println!("computes: {}", embedder.provider());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct EmbedderBuilder {
    pub(crate) loading: Loading,
}

ask_for_model!(EmbedderBuilder);
ask_for_vectors!(EmbedderBuilder);

impl EmbedderBuilder {
    /// Loads the model: finds its files (downloading them where the source is a model id that is
    /// not in the cache), puts the pooling head on, and hands it to an engine.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) with all faults of the configuration;
    /// [`Error::Tokenize`](crate::Error::Tokenize) for a tokenizer
    /// that is missing or not usable; [`Error::Engine`](crate::Error::Engine) for all else.
    pub fn load(self) -> BoxFuture<'static, Result<Embedder>> {
        Box::pin(async move {
            let model = model::load(self.loading.asked(), Output::Vectors).await?;
            Ok(Embedder {
                model: Arc::new(model),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dtype;
    use crate::config::ExecutionProvider;

    fn config(builder: EmbedderBuilder) -> EmbeddingConfig {
        builder.loading.asked().config
    }

    fn builder() -> EmbedderBuilder {
        Embedder::builder("a/model")
    }

    #[test]
    fn every_method_sets_its_knob() {
        let built = builder()
            .dtype(Dtype::Int8)
            .dimension(64)
            .max_length(128)
            .revision("v1")
            .cache_dir("here")
            .offline(true);
        let expected = EmbeddingConfig::default()
            .with_dtype(Dtype::Int8)
            .with_dimension(64)
            .with_max_length(128)
            .with_revision("v1")
            .with_cache_dir("here")
            .with_offline(true);
        assert_eq!(config(built), expected);
        assert_eq!(config(builder()), EmbeddingConfig::default());
    }

    #[test]
    fn a_configuration_takes_the_place_of_what_was_said_before_it() {
        let given = EmbeddingConfig::low_latency();
        let built = builder().dimension(64).device(Device::Gpu);
        assert_eq!(config(built.config(given.clone())), given);
        let built = builder().config(given.clone()).dimension(64);
        assert_eq!(config(built), given.with_dimension(64));
    }

    #[test]
    fn the_last_device_wins() {
        let chain = |builder| config(builder).runtime.providers.execution_providers;
        let gpu = EmbeddingConfig::gpu();
        let cpu = vec![ExecutionProvider::Cpu];
        let on = |device| builder().device(device);
        assert_eq!(config(on(Device::Gpu)), gpu);
        assert_eq!(config(on(Device::Cpu).device(Device::Gpu)), gpu);
        assert_eq!(chain(on(Device::Gpu).device(Device::Cpu)), cpu);
        assert_eq!(
            chain(builder().config(gpu.clone()).device(Device::Cpu)),
            cpu
        );
        assert_eq!(config(on(Device::Cpu).config(gpu.clone())), gpu);
        assert_eq!(
            config(on(Device::Gpu).device(Device::Cpu)),
            config(on(Device::Cpu))
        );
        // What a configuration says of batches stays.
        let small = EmbeddingConfig::default().with_max_batch_size(4);
        let built = config(builder().config(small).device(Device::Gpu));
        assert_eq!(built.batching.max_batch_size, Some(4));
        assert_eq!(
            built.batching.max_batch_tokens,
            gpu.batching.max_batch_tokens
        );
    }

    #[test]
    fn auto_measures_whatever_a_configuration_named() {
        for named in [EmbeddingConfig::default(), EmbeddingConfig::gpu()] {
            let built = config(builder().config(named).device(Device::Auto));
            let providers = &built.runtime.providers;
            assert!(providers.execution_providers.is_empty());
            assert_eq!(providers.provider_auto_selection, Some(true));
            let back = config(builder().config(built).device(Device::Cpu));
            assert_eq!(back.runtime.providers.provider_auto_selection, None);
        }
    }
}
