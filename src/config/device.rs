//! The device to compute on, in one word.

use serde::{Deserialize, Serialize};

use super::{EmbeddingConfig, ExecutionProvider};

/// The device to compute on, without naming providers; see
/// [`EmbedderBuilder::device`](crate::EmbedderBuilder::device).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Device {
    /// The fastest provider of this machine for the model, by a short measurement that is cached
    /// (`providers.provider_auto_selection`).
    Auto,
    /// The processor.
    Cpu,
    /// A GPU, as in [`EmbeddingConfig::gpu`]: CUDA, else isovec's WebGPU path, else the processor.
    Gpu,
}

impl Device {
    /// The configuration with this device in place of its own. Its settings of strictness and batches stay.
    pub(crate) fn set(self, config: EmbeddingConfig) -> EmbeddingConfig {
        let mut config = config;
        let providers = &mut config.runtime.providers;
        providers.provider_auto_selection = None;
        match self {
            Self::Auto => {
                providers.execution_providers.clear();
                providers.provider_auto_selection = Some(true);
            }
            Self::Cpu => providers.execution_providers = vec![ExecutionProvider::Cpu],
            Self::Gpu => {
                let gpu = EmbeddingConfig::gpu();
                providers.execution_providers = gpu.runtime.providers.execution_providers;
                let batching = &mut config.batching;
                batching.max_batch_size = batching.max_batch_size.or(gpu.batching.max_batch_size);
                batching.max_batch_tokens =
                    batching.max_batch_tokens.or(gpu.batching.max_batch_tokens);
            }
        }
        config
    }
}

impl EmbeddingConfig {
    /// Sets the device in place of the providers that were named; settings of strictness and batches stay.
    #[must_use]
    pub fn with_device(self, device: Device) -> Self {
        device.set(self)
    }
}
