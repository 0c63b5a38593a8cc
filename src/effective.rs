//! The SDK's part of the effective configuration.

use isovec_engine::engine::Engine;

pub(crate) use isovec_engine::effective::EffectiveConfig;

use crate::config::{EmbeddingConfig, EngineChoice, ExecutionProvider};
use crate::fallback::Engines;

/// Notes the engine, its provider, and what it makes of its own knobs.
pub(crate) fn note_runtime(
    effective: &mut EffectiveConfig,
    config: &EmbeddingConfig,
    engines: &Engines,
) {
    let engine: &dyn Engine = &**engines.current();
    let provider = engine.provider();
    let asked = match config.runtime.engine {
        EngineChoice::Auto => None,
        EngineChoice::OnnxRuntime => Some("onnxruntime"),
        _ => Some("portable"),
    };
    effective.note("engine", asked, &provider.engine, engines.why());
    let library = config
        .runtime
        .onnxruntime_library
        .as_ref()
        .map(|path| path.display().to_string());
    if provider.engine == "onnxruntime" {
        let used = library
            .clone()
            .unwrap_or_else(|| "the one that was found".into());
        effective.note_own(
            "onnxruntime_library",
            library.as_ref(),
            used,
            "ORT_DYLIB_PATH, set-up's cache, or linked",
        );
    } else {
        let why = format!("the engine {} has no use for it", provider.engine);
        effective.note_unused("onnxruntime_library", library, why);
    }
    effective.note_own(
        "remember",
        config.runtime.remember.as_ref(),
        config.runtime.remembers(),
        "the default",
    );
    note_providers(effective, config, engines);
    effective.extend(engine.effective());
}

fn note_providers(effective: &mut EffectiveConfig, config: &EmbeddingConfig, engines: &Engines) {
    let providers = &config.runtime.providers;
    let chosen = engines.provider();
    let first = providers.execution_providers.first().copied();
    let why = match (first, engines.events().first()) {
        (_, Some(event)) => event.cause.clone(),
        (Some(_), None) => "the configuration".to_owned(),
        (None, None) => "the default".to_owned(),
    };
    let auto = providers.provider_auto_selection.unwrap_or(false);
    if auto {
        effective.note(
            "providers.execution_providers",
            None::<ExecutionProvider>,
            chosen,
            engines.why(),
        );
    } else {
        effective.note("providers.execution_providers", first, chosen, why);
    }
    for (name, asked, default) in [
        (
            "providers.provider_auto_selection",
            providers.provider_auto_selection,
            false,
        ),
        (
            "providers.hardware_detection",
            providers.hardware_detection,
            true,
        ),
        (
            "providers.strict_providers",
            providers.strict_providers,
            false,
        ),
    ] {
        effective.note_own(
            name,
            asked.as_ref(),
            asked.unwrap_or(default),
            "the default",
        );
    }
    let cuda = &providers.cuda;
    let tensorrt = &providers.tensorrt;
    let webgpu = &providers.webgpu;
    let text = |number: Option<u64>| number.map(|number| number.to_string());
    let flag = |on: Option<bool>| on.map(|on| on.to_string());
    let folder = tensorrt.engine_cache.as_ref();
    let typed = [
        (
            "providers.cuda.device_id",
            text(cuda.device_id.map(u64::from)),
            "0",
        ),
        (
            "providers.cuda.memory_limit",
            text(cuda.memory_limit),
            "none",
        ),
        ("providers.cuda.tf32", flag(cuda.tf32), "false"),
        (
            "providers.tensorrt.device_id",
            text(tensorrt.device_id.map(u64::from)),
            "0",
        ),
        (
            "providers.tensorrt.max_workspace_size",
            text(tensorrt.max_workspace_size),
            "TensorRT's own",
        ),
        ("providers.tensorrt.fp16", flag(tensorrt.fp16), "false"),
        (
            "providers.tensorrt.engine_cache",
            folder.map(|path| path.display().to_string()),
            "none",
        ),
        (
            "providers.webgpu.software_adapter",
            flag(webgpu.software_adapter),
            "false",
        ),
        (
            "providers.webgpu.low_power",
            flag(webgpu.low_power),
            "false",
        ),
        ("providers.webgpu.f16", flag(webgpu.f16), "false"),
    ];
    for (name, asked, default) in typed {
        // An engine that knows what became of it says so itself.
        if engines.current().effective().get(name).is_some() {
            continue;
        }
        if name.split('.').nth(1) == Some(chosen.name()) {
            let used = asked.clone().unwrap_or_else(|| default.to_owned());
            effective.note_own(name, asked.as_ref(), used, "the default");
        } else {
            effective.note_unused(name, asked, format!("{chosen} computes"));
        }
    }
    if !providers.options.is_empty() {
        let written = providers
            .options
            .keys()
            .map(|provider| provider.name())
            .collect::<Vec<_>>()
            .join(", ");
        let used = if providers.options.contains_key(&chosen) {
            chosen.name()
        } else {
            "none"
        };
        let why = format!("{chosen} computes");
        effective.note("providers.options", Some(written), used, why);
    }
}
