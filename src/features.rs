//! The engines and providers of this build, and which of them work on this machine.

use isovec_engine::EngineError;
use isovec_engine::config::EngineConfig;
use isovec_engine::engine::{EngineFactory, Probe};
use isovec_engine::hardware::AdapterInfo;
use isovec_engine::maybe_send::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::backend;
use crate::config::{EmbeddingConfig, ExecutionProvider, RuntimeConfig};
use crate::error::Result;
use crate::hardware::HardwareInfo;

/// The engines and providers of this build: which of them work on this machine, and why the others do not.
///
/// A provider that is usable here may still refuse a model: that shows when one is loaded, and is then an event of its
/// [`Stats`](crate::stats::Stats).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Features {
    /// isovec's version.
    pub version: String,
    /// The Cargo features of this build.
    pub built_with: Vec<String>,
    /// [`HardwareInfo::id`].
    pub hardware_id: String,
    /// The machine.
    pub hardware: HardwareInfo,
    /// The engine that `engine = "auto"` takes here, where nothing else is configured.
    pub auto_engine: String,
    /// Every engine that isovec knows, whether or not this build has it.
    pub engines: Vec<EngineFeature>,
}

/// An engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EngineFeature {
    /// As configurations write it.
    pub name: String,
    /// Whether it can be used here.
    pub usable: bool,
    /// Its version, where it can be used.
    pub version: Option<String>,
    /// Why it cannot, where it cannot.
    pub reason: Option<String>,
    /// What to do about that.
    pub hint: Option<String>,
    /// Its providers.
    pub providers: Vec<ProviderFeature>,
}

/// Something that an engine can compute on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProviderFeature {
    /// As configurations write it.
    pub name: String,
    /// Whether it can be used here.
    pub usable: bool,
    /// Why it cannot, where it cannot.
    pub reason: Option<String>,
    /// What to do about that.
    pub hint: Option<String>,
}

impl Features {
    /// Looks at the hardware, and tries every engine and provider as the configuration would have them (its library, its
    /// devices), without a model. That loads ONNX Runtime's library where there is one, and may load those of its providers.
    ///
    /// # Errors
    /// As [`HardwareInfo::detect`]. An unusable provider is not an error.
    pub fn detect(config: &EmbeddingConfig) -> BoxFuture<'static, Result<Self>> {
        let config = config.runtime.clone();
        Box::pin(async move {
            let hardware = HardwareInfo::detect().await?;
            backend::offload("trying the engines", async move {
                let portable = portable(&config, hardware.adapters.as_deref());
                let onnxruntime = onnxruntime(&config);
                let auto = if onnxruntime.usable {
                    &onnxruntime
                } else {
                    &portable
                };
                Ok(Self {
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    built_with: built_with(),
                    hardware_id: hardware.id(),
                    auto_engine: auto.name.clone(),
                    engines: vec![onnxruntime, portable],
                    hardware,
                })
            })
            .await
        })
    }
}

fn built_with() -> Vec<String> {
    [
        ("onnxruntime", cfg!(feature = "onnxruntime")),
        (
            "onnxruntime-download",
            cfg!(feature = "onnxruntime-download"),
        ),
        ("cuda", cfg!(feature = "cuda")),
        ("webgpu", cfg!(feature = "webgpu")),
        ("hub", cfg!(feature = "hub")),
        ("chunking", cfg!(feature = "chunking")),
    ]
    .into_iter()
    .filter(|(_, on)| *on)
    .map(|(name, _)| name.to_owned())
    .collect()
}

fn onnxruntime(config: &RuntimeConfig) -> EngineFeature {
    let name = "onnxruntime";
    let mut providers = ExecutionProvider::ALL.to_vec();
    providers.retain(|provider| *provider != ExecutionProvider::WebGpu);
    let factory = match backend::onnxruntime(config, ExecutionProvider::Cpu) {
        Ok(factory) => factory,
        Err(reason) => return EngineFeature::missing(name, reason, None, &providers),
    };
    let version = match factory.probe() {
        Probe::Available { version, .. } => version,
        Probe::Unavailable { reason, hint } => {
            return EngineFeature::missing(name, &reason, Some(hint), &providers);
        }
        _ => return EngineFeature::missing(name, "without a reason", None, &providers),
    };
    let told = config.of_every_engine();
    let checked = |provider| match backend::onnxruntime(config, provider) {
        Ok(factory) => ProviderFeature::checked(&*factory, &told, provider),
        Err(reason) => ProviderFeature::missing(provider, reason, None),
    };
    EngineFeature {
        name: name.to_owned(),
        usable: true,
        version: Some(version),
        providers: providers.into_iter().map(checked).collect(),
        ..EngineFeature::default()
    }
}

fn portable(config: &RuntimeConfig, adapters: Option<&[AdapterInfo]>) -> EngineFeature {
    let told = config.of_every_engine();
    let cpu = ProviderFeature::checked(&*backend::portable(), &told, ExecutionProvider::Cpu);
    EngineFeature {
        name: "portable".to_owned(),
        usable: cpu.usable,
        version: Some(format!("isovec {}", env!("CARGO_PKG_VERSION"))),
        providers: vec![cpu, webgpu(config, adapters)],
        ..EngineFeature::default()
    }
}

fn webgpu(config: &RuntimeConfig, adapters: Option<&[AdapterInfo]>) -> ProviderFeature {
    let provider = ExecutionProvider::WebGpu;
    let factory = match backend::webgpu(config) {
        Ok(factory) => factory,
        Err(reason) => return ProviderFeature::missing(provider, reason, None),
    };
    let software = config.providers.webgpu.software_adapter.unwrap_or(false);
    let adapters = adapters.unwrap_or_default();
    if adapters.is_empty() {
        let hint = "It needs a driver for Vulkan, Metal or DirectX 12, or a browser with WebGPU";
        return ProviderFeature::missing(provider, "there is no adapter", Some(hint));
    }
    if adapters.iter().all(AdapterInfo::is_software) && !software {
        let reason =
            "the only adapter is a processor that plays a GPU, slower than the processor itself";
        let hint = "Set providers.webgpu.software_adapter to use it all the same";
        return ProviderFeature::missing(provider, reason, Some(hint));
    }
    ProviderFeature::checked(&*factory, &config.of_every_engine(), provider)
}

impl EngineFeature {
    fn missing(
        name: &str,
        reason: &str,
        hint: Option<String>,
        providers: &[ExecutionProvider],
    ) -> Self {
        let reason_of_all = format!("the engine {name} is not available");
        Self {
            name: name.to_owned(),
            reason: Some(reason.to_owned()),
            hint,
            providers: providers
                .iter()
                .map(|provider| ProviderFeature::missing(*provider, &reason_of_all, None))
                .collect(),
            ..Self::default()
        }
    }
}

impl ProviderFeature {
    fn missing(provider: ExecutionProvider, reason: &str, hint: Option<&str>) -> Self {
        Self {
            name: provider.name().to_owned(),
            usable: false,
            reason: Some(reason.to_owned()),
            hint: hint.map(str::to_owned),
        }
    }

    /// What an engine says of it before there is a model.
    fn checked(
        factory: &dyn EngineFactory,
        config: &EngineConfig,
        provider: ExecutionProvider,
    ) -> Self {
        match factory.check(config) {
            Ok(()) => Self {
                name: provider.name().to_owned(),
                usable: true,
                ..Self::default()
            },
            Err(
                EngineError::ProviderUnavailable { reason, hint, .. }
                | EngineError::EngineUnavailable { reason, hint, .. },
            ) => Self::missing(provider, &reason, Some(&hint)),
            Err(other) => Self::missing(provider, &other.to_string(), None),
        }
    }
}
