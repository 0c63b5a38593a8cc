//! The options of ONNX Runtime alone: its library, its provider, and the options of that provider.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The options of ONNX Runtime, beside the settings that every engine gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Path of the library. `None`: the `ORT_DYLIB_PATH` variable, then what `offer` named, then set-up's cache.
    pub library: Option<PathBuf>,
    /// The provider.
    pub provider: Provider,
    /// Look for the hardware before the provider is tried. `None`: true.
    pub hardware_detection: Option<bool>,
    /// Options of CUDA.
    pub cuda: CudaOptions,
    /// Options of TensorRT.
    pub tensorrt: TensorRtOptions,
    /// Options of any other provider, by ONNX Runtime's own names.
    pub others: BTreeMap<String, String>,
}

/// An execution provider of ONNX Runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provider {
    /// NVIDIA GPUs.
    Cuda,
    /// NVIDIA GPUs, through TensorRT.
    TensorRt,
    /// AMD GPUs.
    Rocm,
    /// GPUs on Windows.
    DirectMl,
    /// Apple's accelerators.
    CoreMl,
    /// Intel's accelerators.
    OpenVino,
    /// Any GPU, by ONNX Runtime's own path for WebGPU.
    WebGpu,
    /// The processor.
    #[default]
    Cpu,
}

impl Provider {
    /// All of them, best first.
    pub const ALL: [Self; 8] = [
        Self::Cuda,
        Self::TensorRt,
        Self::Rocm,
        Self::DirectMl,
        Self::CoreMl,
        Self::OpenVino,
        Self::WebGpu,
        Self::Cpu,
    ];

    /// The name in errors, and in what a probe says.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::TensorRt => "tensorrt",
            Self::Rocm => "rocm",
            Self::DirectMl => "directml",
            Self::CoreMl => "coreml",
            Self::OpenVino => "openvino",
            // The GPU engine has the name without the prefix.
            Self::WebGpu => "ort-webgpu",
            Self::Cpu => "cpu",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Options of CUDA.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
