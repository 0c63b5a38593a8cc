//! Execution providers: finds one, adds it, and checks that it really computes.

use std::collections::BTreeMap;
use std::env::consts::OS;
use std::fs;
use std::path::Path;

use isovec_engine::error::{EngineError, Result};

use crate::explain;
use crate::options::{Options, Provider};
use crate::sys::{SessionOptions, available_providers};

/// What ONNX Runtime calls a provider.
pub(crate) fn runtime_name(provider: Provider) -> &'static str {
    match provider {
        Provider::Cuda => "CUDAExecutionProvider",
        Provider::TensorRt => "TensorrtExecutionProvider",
        // ONNX Runtime's own path for AMD was replaced by MIGraphX with version 1.23.
        Provider::Rocm => "MIGraphXExecutionProvider",
        Provider::DirectMl => "DmlExecutionProvider",
        Provider::CoreMl => "CoreMLExecutionProvider",
        Provider::OpenVino => "OpenVINOExecutionProvider",
        Provider::WebGpu => "WebGpuExecutionProvider",
        Provider::Cpu => "CPUExecutionProvider",
    }
}

/// The word for it in `ProviderInfo`: `CUDA`.
pub(crate) fn short_name(provider: Provider) -> &'static str {
    runtime_name(provider)
        .strip_suffix("ExecutionProvider")
        .unwrap_or("CPU")
}

/// Those that this build of the library has, best first.
pub(crate) fn available() -> Result<Vec<Provider>> {
    let names = available_providers().map_err(|error| explain::run(&error))?;
    Ok(Provider::ALL
        .into_iter()
        .filter(|provider| names.iter().any(|name| name == runtime_name(*provider)))
        .collect())
}

/// Adds a provider to a session's options, or says why it cannot be used.
pub(crate) fn append(session: &mut SessionOptions, options: &Options) -> Result<()> {
    let provider = options.provider;
    if provider == Provider::Cpu {
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
    if options.hardware_detection.unwrap_or(true) {
        look(options).map_err(|reason| {
            unavailable(
                reason,
                "Leave it out of providers.execution_providers, or set \
                 providers.hardware_detection to false to try it all the same",
            )
        })?;
    }
    session.append(provider, &keys(options)).map_err(|error| {
        unavailable(
            explain::text(&error),
            "ONNX Runtime's page of the provider lists the libraries that it needs",
        )
    })
}

/// Whether it truly has nodes of the graph; ONNX Runtime leaves those that a provider cannot run
/// to the processor, all of them if need be, and says nothing.
pub(crate) fn assigned(provider: Provider, placement: &BTreeMap<String, usize>) -> Result<()> {
    if provider == Provider::Cpu
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
fn build_with(provider: Provider) -> &'static str {
    match provider {
        Provider::Cuda | Provider::TensorRt => "Name a library from the package onnxruntime-gpu",
        Provider::DirectMl => "Name a library from the package onnxruntime-directml",
        Provider::OpenVino => "Name a library from the package onnxruntime-openvino",
        Provider::Rocm => "Name a library from the package onnxruntime-migraphx",
        _ => "Name a library that was built with it",
    }
}

/// Whether the hardware seems to be there. Only what can be told without loading a driver.
fn look(options: &Options) -> std::result::Result<(), String> {
    match options.provider {
        Provider::Cuda => nvidia(options.cuda.device_id, "cuda"),
        Provider::TensorRt => nvidia(options.tensorrt.device_id, "tensorrt"),
        Provider::Rocm if !Path::new("/dev/kfd").exists() => {
            Err("this machine has no AMD GPU that computes (/dev/kfd does not exist)".into())
        }
        Provider::DirectMl if OS != "windows" => Err(format!("{OS} has no DirectX 12")),
        Provider::CoreMl if OS != "macos" && OS != "ios" => Err(format!("{OS} has no Core ML")),
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
fn keys(options: &Options) -> BTreeMap<String, String> {
    let mut keys = options.others.clone();
    let mut set = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            keys.insert(key.to_owned(), value);
        }
    };
    let flag = |on: bool| Some(if on { "1" } else { "0" }.to_owned());
    match options.provider {
        Provider::Cuda => {
            let cuda = &options.cuda;
            set("device_id", Some(cuda.device_id.unwrap_or(0).to_string()));
            set("gpu_mem_limit", cuda.memory_limit.map(|n| n.to_string()));
            // Not ONNX Runtime's default: TF32 keeps ten bits of mantissa.
            set("use_tf32", flag(cuda.tf32.unwrap_or(false)));
            // ONNX Runtime warns of data races with a stream of its own for copies: its issue 4829.
            set("do_copy_in_default_stream", flag(true));
        }
        Provider::TensorRt => {
            let tensorrt = &options.tensorrt;
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
pub(crate) fn check(options: &Options) -> Result<()> {
    let mut session = SessionOptions::new().map_err(|error| explain::run(&error))?;
    append(&mut session, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CudaOptions;

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
        let keys = keys(&Options {
            provider: Provider::Cuda,
            cuda: CudaOptions {
                device_id: Some(1),
                memory_limit: Some(1000),
                ..CudaOptions::default()
            },
            ..Options::default()
        });
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
        assigned(Provider::Cuda, &placement("CUDAExecutionProvider")).unwrap();
        let error = assigned(Provider::Cuda, &placement("CPUExecutionProvider")).unwrap_err();
        assert!(
            error.to_string().contains("CPUExecutionProvider: 12"),
            "{error}"
        );
        assigned(Provider::Cpu, &BTreeMap::new()).unwrap();
    }
}
