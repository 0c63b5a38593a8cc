//! Execution providers: finds one, adds it, and checks that it really computes.

use std::collections::BTreeMap;
use std::env::consts::OS;
use std::fs;
use std::path::Path;

use isovec_engine::config::{EngineConfig, ExecutionProvider};
use isovec_engine::error::{EngineError, Result};

use crate::sys::{SessionOptions, available_providers};
use crate::{NAME, explain};

/// What ONNX Runtime calls a provider.
pub(crate) fn runtime_name(provider: ExecutionProvider) -> &'static str {
    match provider {
        ExecutionProvider::Cuda => "CUDAExecutionProvider",
        ExecutionProvider::TensorRt => "TensorrtExecutionProvider",
        // ONNX Runtime's own path for AMD was replaced by MIGraphX with version 1.23.
        ExecutionProvider::Rocm => "MIGraphXExecutionProvider",
        ExecutionProvider::DirectMl => "DmlExecutionProvider",
        ExecutionProvider::CoreMl => "CoreMLExecutionProvider",
        ExecutionProvider::OpenVino => "OpenVINOExecutionProvider",
        ExecutionProvider::OrtWebGpu => "WebGpuExecutionProvider",
        _ => "CPUExecutionProvider",
    }
}

/// The word for it in `ProviderInfo`: `CUDA`.
pub(crate) fn short_name(provider: ExecutionProvider) -> &'static str {
    runtime_name(provider)
        .strip_suffix("ExecutionProvider")
        .unwrap_or("CPU")
}

/// Those that this build of the library has, best first.
pub(crate) fn available() -> Result<Vec<ExecutionProvider>> {
    let names = available_providers().map_err(|error| explain::run(&error))?;
    Ok(ExecutionProvider::ALL
        .into_iter()
        .filter(|provider| *provider != ExecutionProvider::WebGpu)
        .filter(|provider| names.iter().any(|name| name == runtime_name(*provider)))
        .collect())
}

/// Adds a provider to a session's options, or says why it cannot be used.
pub(crate) fn append(
    options: &mut SessionOptions,
    provider: ExecutionProvider,
    config: &EngineConfig,
) -> Result<()> {
    if provider == ExecutionProvider::Cpu {
        return Ok(());
    }
    let unavailable = |reason: String, hint: &str| EngineError::ProviderUnavailable {
        provider: provider.name().into(),
        reason,
        hint: hint.into(),
    };
    let built_in = available()?;
    if !built_in.contains(&provider) {
        let has: Vec<&str> = built_in.iter().map(|provider| provider.name()).collect();
        return Err(unavailable(
            format!(
                "this build of ONNX Runtime does not have it (it has {})",
                has.join(", ")
            ),
            build_with(provider),
        ));
    }
    if config.providers.hardware_detection.unwrap_or(true) {
        look(provider, config).map_err(|reason| {
            unavailable(
                reason,
                "Leave it out of providers.execution_providers, or set \
                 providers.hardware_detection to false to try it all the same",
            )
        })?;
    }
    options
        .append(provider, &keys(provider, config))
        .map_err(|error| {
            unavailable(
                explain::text(&error),
                "ONNX Runtime's page of the provider lists the libraries that it needs",
            )
        })
}

/// Whether it truly has nodes of the graph; ONNX Runtime leaves those that a provider cannot run
/// to the processor, all of them if need be, and says nothing.
pub(crate) fn assigned(
    provider: ExecutionProvider,
    placement: &BTreeMap<String, usize>,
) -> Result<()> {
    if provider == ExecutionProvider::Cpu
        || placement
            .get(runtime_name(provider))
            .is_some_and(|&nodes| nodes > 0)
    {
        return Ok(());
    }
    let who: Vec<String> = placement
        .iter()
        .map(|(name, nodes)| format!("{name}: {nodes}"))
        .collect();
    Err(EngineError::ProviderUnavailable {
        provider: provider.name().into(),
        reason: format!(
            "it was registered, but not one node of this model was given to it ({})",
            who.join(", ")
        ),
        hint: "Its own log has the reason, at level debug of the target `onnxruntime`".into(),
    })
}

/// The library that has it.
fn build_with(provider: ExecutionProvider) -> &'static str {
    match provider {
        ExecutionProvider::Cuda | ExecutionProvider::TensorRt => {
            "Name a library from the package onnxruntime-gpu"
        }
        ExecutionProvider::DirectMl => "Name a library from the package onnxruntime-directml",
        ExecutionProvider::OpenVino => "Name a library from the package onnxruntime-openvino",
        ExecutionProvider::Rocm => "Name a library from the package onnxruntime-migraphx",
        _ => "Name a library that was built with it",
    }
}

/// Whether the hardware seems to be there. Only what can be told without loading a driver.
fn look(provider: ExecutionProvider, config: &EngineConfig) -> std::result::Result<(), String> {
    match provider {
        ExecutionProvider::Cuda => nvidia(config.providers.cuda.device_id, "cuda"),
        ExecutionProvider::TensorRt => nvidia(config.providers.tensorrt.device_id, "tensorrt"),
        ExecutionProvider::Rocm if !Path::new("/dev/kfd").exists() => {
            Err("this machine has no AMD GPU that computes (/dev/kfd does not exist)".into())
        }
        ExecutionProvider::DirectMl if OS != "windows" => Err(format!("{OS} has no DirectX 12")),
        ExecutionProvider::CoreMl if OS != "macos" && OS != "ios" => {
            Err(format!("{OS} has no Core ML"))
        }
        _ => Ok(()),
    }
}

fn nvidia(device: Option<u32>, knob: &str) -> std::result::Result<(), String> {
    if OS == "windows" {
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        let driver = Path::new(&root).join("System32").join("nvcuda.dll");
        return if driver.is_file() {
            Ok(())
        } else {
            Err(format!(
                "NVIDIA's driver is not installed ({} does not exist)",
                driver.display()
            ))
        };
    }
    // WSL passes GPUs through one device of its own and does not number them.
    if Path::new("/dev/dxg").exists() {
        return Ok(());
    }
    let count = gpus(Path::new("/dev"));
    if count == 0 {
        return Err("this machine has no NVIDIA GPU (/dev/nvidia0 does not exist)".into());
    }
    // A selection by the driver's own variable renumbers the devices.
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_some() {
        return Ok(());
    }
    match device {
        Some(device) if device as usize >= count => Err(format!(
            "providers.{knob}.device_id is {device}, and this machine's {count} NVIDIA GPU{} \
             numbered from 0",
            if count == 1 { " is" } else { "s are" }
        )),
        _ => Ok(()),
    }
}

/// The device files `nvidia0`, `nvidia1`, ... of a folder.
fn gpus(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.strip_prefix("nvidia"))
                .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
        })
        .count()
}

/// A provider's options by ONNX Runtime's names.
fn keys(provider: ExecutionProvider, config: &EngineConfig) -> BTreeMap<String, String> {
    let mut keys = config
        .providers
        .options
        .get(&provider)
        .cloned()
        .unwrap_or_default();
    let mut set = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    };
    let flag = |on: bool| Some(if on { "1" } else { "0" }.to_owned());
    match provider {
        ExecutionProvider::Cuda => {
            let cuda = &config.providers.cuda;
            set("device_id", Some(cuda.device_id.unwrap_or(0).to_string()));
            set("gpu_mem_limit", cuda.memory_limit.map(|n| n.to_string()));
            // Not ONNX Runtime's default: TF32 keeps ten bits of mantissa.
            set("use_tf32", flag(cuda.tf32.unwrap_or(false)));
            let own_stream = config.io.cuda_memory_streams.unwrap_or(true);
            set("do_copy_in_default_stream", flag(!own_stream));
        }
        ExecutionProvider::TensorRt => {
            let tensorrt = &config.providers.tensorrt;
            set(
                "device_id",
                Some(tensorrt.device_id.unwrap_or(0).to_string()),
            );
            set(
                "trt_max_workspace_size",
                tensorrt.max_workspace_size.map(|n| n.to_string()),
            );
            set("trt_fp16_enable", flag(tensorrt.fp16.unwrap_or(false)));
            if let Some(folder) = &tensorrt.engine_cache {
                set("trt_engine_cache_enable", flag(true));
                set("trt_engine_cache_path", Some(folder.display().to_string()));
            }
        }
        _ => {}
    }
    keys
}

/// What cannot be used whatever the model is: refused before one is touched, where the chain has
/// nothing else to turn to.
pub(crate) fn check(config: &EngineConfig) -> Result<()> {
    for provider in config.providers.chain() {
        if *provider == ExecutionProvider::WebGpu {
            return Err(EngineError::ProviderUnavailable {
                provider: provider.name().into(),
                reason: format!("the engine {NAME} does not have it"),
                hint: "Its own path through WebGPU is called ort-webgpu".into(),
            });
        }
        let mut options = SessionOptions::new().map_err(|error| explain::run(&error))?;
        append(&mut options, *provider, config)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_by_their_numbered_files() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(gpus(folder.path()), 0);
        for name in ["nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm", "nvidia"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(gpus(folder.path()), 2);
        assert_eq!(gpus(&folder.path().join("none")), 0);
    }

    #[test]
    fn typed_options_become_the_runtimes_keys() {
        let json = r#"{"providers": {"execution_providers": ["cuda"], "cuda":
            {"device_id": 1, "memory_limit": 1000}}, "io": {"cuda_memory_streams": false}}"#;
        let config = config(json);
        let keys = keys(ExecutionProvider::Cuda, &config);
        let expected = [
            ("device_id", "1"),
            ("do_copy_in_default_stream", "1"),
            ("gpu_mem_limit", "1000"),
            ("use_tf32", "0"),
        ];
        let keys: Vec<(&str, &str)> = keys.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(keys, expected);
    }

    #[test]
    fn a_provider_without_nodes_does_not_compute() {
        let placement = |name: &str| BTreeMap::from([(name.to_owned(), 12)]);
        assigned(ExecutionProvider::Cuda, &placement("CUDAExecutionProvider")).unwrap();
        let error =
            assigned(ExecutionProvider::Cuda, &placement("CPUExecutionProvider")).unwrap_err();
        assert!(
            error.to_string().contains("CPUExecutionProvider: 12"),
            "{error}"
        );
        assigned(ExecutionProvider::Cpu, &BTreeMap::new()).unwrap();
    }

    fn config(json: &str) -> EngineConfig {
        serde_json::from_str(json).unwrap()
    }
}
