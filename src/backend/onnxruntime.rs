//! The engine that needs a shared library, with its options from the configuration.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::EngineFactory;
use isovec_engine::onnx::proto::ModelProto;
use isovec_engine::weights::WeightInfo;
use isovec_engine::{EngineError, Result};
use isovec_native::{CudaOptions, OnnxRuntime, Options, Provider, TensorRtOptions};

use crate::config::{ExecutionProvider, RuntimeConfig};

/// The engine on one of its providers, or why there is none.
pub(crate) fn onnxruntime(
    config: &RuntimeConfig,
    provider: ExecutionProvider,
) -> std::result::Result<Arc<dyn EngineFactory>, &'static str> {
    let options = options(config, provider)?;
    Ok(Arc::new(OnnxRuntime::new(options)))
}

/// The graph as the engine optimises it for that provider.
pub(crate) async fn optimized(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    provider: ExecutionProvider,
    cancel: &Cancel,
) -> Result<(ModelProto, Vec<WeightInfo>)> {
    let options = options(config, provider).map_err(|reason| EngineError::ProviderUnavailable {
        provider: provider.name().into(),
        reason: reason.into(),
        hint: "Name another provider".into(),
    })?;
    let config = config.of_every_engine();
    isovec_native::optimized(bundle, &options, &config, cancel).await
}

fn options(
    config: &RuntimeConfig,
    provider: ExecutionProvider,
) -> std::result::Result<Options, &'static str> {
    let providers = &config.providers;
    let (cuda, tensorrt) = (&providers.cuda, &providers.tensorrt);
    Ok(Options {
        library: config.onnxruntime_library.clone(),
        provider: match provider {
            ExecutionProvider::Cuda => Provider::Cuda,
            ExecutionProvider::TensorRt => Provider::TensorRt,
            ExecutionProvider::Rocm => Provider::Rocm,
            ExecutionProvider::DirectMl => Provider::DirectMl,
            ExecutionProvider::CoreMl => Provider::CoreMl,
            ExecutionProvider::OpenVino => Provider::OpenVino,
            ExecutionProvider::OrtWebGpu => Provider::WebGpu,
            ExecutionProvider::WebGpu => {
                return Err("it is isovec's own, and ONNX Runtime's path is called ort-webgpu");
            }
            ExecutionProvider::Cpu => Provider::Cpu,
        },
        hardware_detection: providers.hardware_detection,
        cuda: CudaOptions {
            device_id: cuda.device_id,
            memory_limit: cuda.memory_limit,
            tf32: cuda.tf32,
        },
        tensorrt: TensorRtOptions {
            device_id: tensorrt.device_id,
            max_workspace_size: tensorrt.max_workspace_size,
            fp16: tensorrt.fp16,
            engine_cache: tensorrt.engine_cache.clone(),
        },
        others: providers
            .options
            .get(&provider)
            .cloned()
            .unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_of_the_same_name_are_the_same() {
        let config = RuntimeConfig::default();
        for provider in ExecutionProvider::ALL {
            let found = options(&config, provider).map(|options| options.provider.name());
            let wanted = provider.needs_onnxruntime() || provider == ExecutionProvider::Cpu;
            assert_eq!(found.ok(), wanted.then_some(provider.name()));
        }
    }

    #[test]
    fn what_is_configured_reaches_the_engine() {
        let json = r#"{"onnxruntime_library": "x.so",
            "providers": {"hardware_detection": false,
                "cuda": {"device_id": 1, "memory_limit": 2, "tf32": true},
                "tensorrt": {"device_id": 3, "max_workspace_size": 4, "fp16": true, "engine_cache": "y"},
                "options": {"openvino": {"device_type": "GPU"}}}}"#;
        let config: RuntimeConfig = serde_json::from_str(json).unwrap();
        let device = ("device_type".to_owned(), "GPU".to_owned());
        let expected = Options {
            library: Some("x.so".into()),
            provider: Provider::OpenVino,
            hardware_detection: Some(false),
            cuda: CudaOptions {
                device_id: Some(1),
                memory_limit: Some(2),
                tf32: Some(true),
            },
            tensorrt: TensorRtOptions {
                device_id: Some(3),
                max_workspace_size: Some(4),
                fp16: Some(true),
                engine_cache: Some("y".into()),
            },
            others: [device].into(),
        };
        let found = options(&config, ExecutionProvider::OpenVino).unwrap();
        assert_eq!(found, expected);
        // Options are for the provider that they name.
        let cuda = options(&config, ExecutionProvider::Cuda).unwrap();
        assert!(cuda.others.is_empty());
    }
}
