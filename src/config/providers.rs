//! The providers that an engine may use, their order, and their options.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::suggest::suggest;

/// Hardware that computes, and the library that drives it. A list of providers is a chain: the first that works is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "&'static str")]
#[cfg_attr(
    feature = "schema",
    schemars(!try_from, !into, rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum ExecutionProvider {
    /// NVIDIA GPUs, by ONNX Runtime.
    Cuda,
    /// NVIDIA GPUs, by ONNX Runtime through TensorRT.
    TensorRt,
    /// AMD GPUs, by ONNX Runtime.
    Rocm,
    /// GPUs on Windows, by ONNX Runtime.
    DirectMl,
    /// Apple's accelerators, by ONNX Runtime.
    CoreMl,
    /// Intel's accelerators, by ONNX Runtime.
    OpenVino,
    /// Any GPU, by ONNX Runtime's own WebGPU path.
    #[cfg_attr(feature = "schema", schemars(rename = "ort-webgpu"))]
    OrtWebGpu,
    /// Any GPU, by isovec's own path through wgpu.
    WebGpu,
    /// The processor, which is always there.
    Cpu,
}

/// Every provider with the name that configurations write.
const NAMES: [(ExecutionProvider, &str); 9] = [
    (ExecutionProvider::Cuda, "cuda"),
    (ExecutionProvider::TensorRt, "tensorrt"),
    (ExecutionProvider::Rocm, "rocm"),
    (ExecutionProvider::DirectMl, "directml"),
    (ExecutionProvider::CoreMl, "coreml"),
    (ExecutionProvider::OpenVino, "openvino"),
    (ExecutionProvider::OrtWebGpu, "ort-webgpu"),
    (ExecutionProvider::WebGpu, "webgpu"),
    (ExecutionProvider::Cpu, "cpu"),
];

impl ExecutionProvider {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Cuda,
        Self::TensorRt,
        Self::Rocm,
        Self::DirectMl,
        Self::CoreMl,
        Self::OpenVino,
        Self::OrtWebGpu,
        Self::WebGpu,
        Self::Cpu,
    ];

    /// The name that configurations write.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(provider, _)| *provider == self)
            .map_or("cpu", |(_, name)| name)
    }

    /// Whether ONNX Runtime is the engine that has it. The processor belongs to every engine.
    pub fn needs_onnxruntime(self) -> bool {
        !matches!(self, Self::WebGpu | Self::Cpu)
    }

    /// The keys that [`ProvidersConfig::options`] takes for it: those of ONNX Runtime's
    /// documentation of the provider (onnxruntime.ai/docs/execution-providers). None where the
    /// options have types of their own.
    fn option_keys(self) -> &'static [&'static str] {
        match self {
            Self::Rocm => &[
                "device_id",
                "miopen_conv_exhaustive_search",
                "gpu_mem_limit",
                "arena_extend_strategy",
                "do_copy_in_default_stream",
                "tunable_op_enable",
                "tunable_op_tuning_enable",
            ],
            Self::DirectMl => &[
                "device_id",
                "performance_preference",
                "device_filter",
                "disable_metacommands",
                "enable_graph_capture",
            ],
            Self::CoreMl => &[
                "ModelFormat",
                "MLComputeUnits",
                "RequireStaticInputShapes",
                "EnableOnSubgraphs",
                "SpecializationStrategy",
                "ProfileComputePlan",
                "AllowLowPrecisionAccumulationOnGPU",
                "ModelCacheDirectory",
            ],
            Self::OpenVino => &[
                "device_type",
                "precision",
                "num_of_threads",
                "num_streams",
                "cache_dir",
                "model_priority",
                "enable_opencl_throttling",
                "disable_dynamic_shapes",
                "load_config",
            ],
            Self::OrtWebGpu => &[
                "deviceId",
                "preferredLayout",
                "enableGraphCapture",
                "dawnBackendType",
                "powerPreference",
                "validationMode",
                "forceCpuNodeNames",
                "storageBufferCacheMode",
                "uniformBufferCacheMode",
            ],
            Self::Cuda | Self::TensorRt | Self::WebGpu | Self::Cpu => &[],
        }
    }
}

impl fmt::Display for ExecutionProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ExecutionProvider> for &'static str {
    fn from(provider: ExecutionProvider) -> Self {
        provider.name()
    }
}

impl FromStr for ExecutionProvider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(provider, _)| *provider)
            .ok_or_else(|| UnknownProvider(name.to_owned()))
    }
}

impl TryFrom<String> for ExecutionProvider {
    type Error = UnknownProvider;

    fn try_from(name: String) -> Result<Self, UnknownProvider> {
        name.parse()
    }
}

/// The error for a name that no provider has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no execution provider {0:?}; {hint}", hint = suggest(.0, NAMES.iter().map(|(_, name)| *name)))]
pub struct UnknownProvider(String);

/// Options of CUDA.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CudaOptions {
    /// Which GPU. `None`: 0.
    pub device_id: Option<u32>,
    /// Bytes that its arena may take on the device. `None`: no limit.
    pub memory_limit: Option<u64>,
    /// Let matrix products round their inputs to TF32's ten bits of mantissa. `None`: false, as
    /// vectors then leave the bound that fp32 promises.
    pub tf32: Option<bool>,
}

/// Options of TensorRT.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TensorRtOptions {
    /// Which GPU. `None`: 0.
    pub device_id: Option<u32>,
    /// Bytes that building an engine may take on the device. `None`: TensorRT's own default.
    pub max_workspace_size: Option<u64>,
    /// Compute in half precision. `None`: false, as vectors then leave the bound of fp32.
    pub fp16: Option<bool>,
    /// Keep built engines in this folder; building one takes minutes. `None`: they are not kept.
    pub engine_cache: Option<PathBuf>,
}

/// Options of WebGPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WebGpuOptions {
    /// Use an adapter that emulates a GPU on the processor. It is slower than the processor itself. `None`: false.
    pub software_adapter: Option<bool>,
    /// Of two adapters, take the one that uses less power. `None`: false.
    pub low_power: Option<bool>,
    /// Store weights, and the inputs of products and attention, as 16-bit floats if the adapter has `shader-f16`;
    /// sums stay 32-bit. `None`: false, as vectors then leave the bound of fp32.
    pub f16: Option<bool>,
}

/// The providers that an engine may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ProvidersConfig {
    /// The providers to try, best first. The first that works is used; those before it are reported with the
    /// reason. Empty: the processor.
    pub execution_providers: Vec<ExecutionProvider>,
    /// Measure every available provider in a short run and take the fastest. The result is cached per model and
    /// machine. `None`: false.
    pub provider_auto_selection: Option<bool>,
    /// Look for the device before a driver is loaded. `None`: true.
    pub hardware_detection: Option<bool>,
    /// A provider of the chain that does not work is an error, not a reason to go on to the next; a lost device is not
    /// replaced. `None`: false.
    pub strict_providers: Option<bool>,
    /// Options of CUDA.
    pub cuda: CudaOptions,
    /// Options of TensorRT.
    pub tensorrt: TensorRtOptions,
    /// Options of WebGPU.
    pub webgpu: WebGpuOptions,
    /// Options of the others, by ONNX Runtime's own names. Empty: ONNX Runtime's defaults.
    // The names of an enum with documented variants would get lost as a map's keys.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("propertyNames" = {"$ref": "#/$defs/ExecutionProvider"}))
    )]
    pub options: BTreeMap<ExecutionProvider, BTreeMap<String, String>>,
}

impl ProvidersConfig {
    /// What to try, best first; never empty.
    pub fn chain(&self) -> &[ExecutionProvider] {
        if self.execution_providers.is_empty() {
            &[ExecutionProvider::Cpu]
        } else {
            &self.execution_providers
        }
    }

    /// Whether a provider that does not work is an error.
    pub fn strict(&self) -> bool {
        self.strict_providers.unwrap_or(false)
    }

    pub(super) fn check(&self, faults: &mut Vec<String>) {
        let chain = self.chain();
        for (at, provider) in chain.iter().enumerate() {
            if chain[..at].contains(provider) {
                faults.push(format!(
                    "providers.execution_providers names {provider} twice"
                ));
            }
            if *provider == ExecutionProvider::Cpu && at + 1 < chain.len() {
                faults.push(format!(
                    "providers.execution_providers names {} behind cpu, which always works",
                    chain[at + 1]
                ));
            }
        }
        let typed = [
            (ExecutionProvider::Cuda, self.cuda != CudaOptions::default()),
            (
                ExecutionProvider::TensorRt,
                self.tensorrt != TensorRtOptions::default(),
            ),
            (
                ExecutionProvider::WebGpu,
                self.webgpu != WebGpuOptions::default(),
            ),
        ];
        for (provider, set) in typed {
            if set && !chain.contains(&provider) && self.provider_auto_selection != Some(true) {
                faults.push(format!(
                    "providers.{provider} is set, but providers.execution_providers does not name \
                     {provider}"
                ));
            }
        }
        if self.cuda.memory_limit == Some(0) {
            faults.push("providers.cuda.memory_limit is 0; leave it out for no limit".into());
        }
        for (provider, options) in &self.options {
            let known = provider.option_keys();
            for key in options.keys() {
                if known.contains(&key.as_str()) {
                    continue;
                }
                let hint = if known.is_empty() {
                    match provider {
                        ExecutionProvider::Cuda
                        | ExecutionProvider::TensorRt
                        | ExecutionProvider::WebGpu => {
                            format!("set its options in providers.{provider}")
                        }
                        _ => "it has none".to_owned(),
                    }
                } else {
                    suggest(key, known.iter().copied())
                };
                faults.push(format!(
                    "providers.options.{provider} has no option {key:?}; {hint}"
                ));
            }
            if !chain.contains(provider) {
                faults.push(format!(
                    "providers.options.{provider} is set, but providers.execution_providers does \
                     not name {provider}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for provider in ExecutionProvider::ALL {
            assert_eq!(provider.name().parse(), Ok(provider));
            let json = serde_json::to_string(&provider).unwrap();
            assert_eq!(
                serde_json::from_str::<ExecutionProvider>(&json).unwrap(),
                provider
            );
        }
    }

    #[test]
    fn an_unknown_name_comes_with_the_one_that_was_meant() {
        for (written, meant) in [
            ("Cuda", "cuda"),
            ("CUDAExecutionProvider", "cuda"),
            ("tensor-rt", "tensorrt"),
            ("direct_ml", "directml"),
            ("ort_webgpu", "ort-webgpu"),
        ] {
            let error = written
                .parse::<ExecutionProvider>()
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!("did you mean {meant:?}")),
                "{written}: {error}"
            );
        }
        let error = "xyz".parse::<ExecutionProvider>().unwrap_err().to_string();
        assert!(error.contains("cuda, tensorrt"), "{error}");
    }

    #[test]
    fn options_are_checked_against_the_providers_own() {
        let mut config = ProvidersConfig {
            execution_providers: vec![ExecutionProvider::OpenVino, ExecutionProvider::Cpu],
            ..ProvidersConfig::default()
        };
        let options = [("device_typ", "CPU")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        config
            .options
            .insert(ExecutionProvider::OpenVino, options.into());
        let mut faults = Vec::new();
        config.check(&mut faults);
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].contains("did you mean \"device_type\""),
            "{faults:?}"
        );
    }
}
