//! Which engine runs the model on the processor.

use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::{Engine, Probe};
use isovec_engine::stats::Fallback;

use crate::backend;
use crate::config::{EngineChoice, ExecutionProvider, RuntimeConfig};

/// A loaded engine, and why it is this one.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) why: String,
    /// The engine that was to be used and could not.
    pub(crate) fallback: Option<Fallback>,
}

/// Loads the model, for the processor, into the engine that the configuration asks for.
///
/// `Auto` is ONNX Runtime where its library was named, else the portable engine, which also computes a model whose
/// activations are to be rounded, as nothing else does. A library that the configuration itself names has to work; one
/// that the environment names may be replaced, with a warning.
pub(crate) async fn choose(
    bundle: &ModelBundle,
    config: &RuntimeConfig,
    cancel: &Cancel,
) -> Result<Chosen, EngineError> {
    let told = &config.of_every_engine();
    let portable = async |why: String| {
        let engine = backend::portable().load(bundle, told, cancel).await?;
        Ok(Chosen {
            engine,
            why,
            fallback: None,
        })
    };
    let onnxruntime = backend::onnxruntime(config, ExecutionProvider::Cpu);
    match config.engine {
        EngineChoice::Portable => portable("it was asked for".into()).await,
        EngineChoice::OnnxRuntime => {
            let factory = onnxruntime.map_err(|reason| EngineError::EngineUnavailable {
                engine: "onnxruntime",
                reason: reason.to_owned(),
                hint: "Choose the engine `portable`".into(),
            })?;
            let engine = factory.load(bundle, told, cancel).await?;
            Ok(Chosen {
                engine,
                why: "it was asked for".into(),
                fallback: None,
            })
        }
        _ => {
            let named = config.onnxruntime_library.is_some();
            if !named && bundle.rounds_activations() {
                match portable("it alone rounds activations, as model.dtype asks".into()).await {
                    Err(error) if replaceable(&error) => {
                        tracing::warn!(%error, "the portable engine, which alone rounds activations, cannot run this model; another engine computes int8");
                    }
                    chosen => return chosen,
                }
            }
            let factory = match onnxruntime {
                Ok(factory) => factory,
                Err(reason) => {
                    return portable(format!("ONNX Runtime is not here: {reason}")).await;
                }
            };
            if !named && let Probe::Unavailable { reason, hint } = factory.probe() {
                if std::env::var_os("ORT_DYLIB_PATH").is_some() {
                    tracing::warn!(%reason, %hint, "ONNX Runtime cannot be used; the portable engine takes its place");
                    let mut chosen =
                        portable(format!("ONNX Runtime cannot be used: {reason}")).await?;
                    chosen.fallback = Some(Fallback::new("onnxruntime", "portable", reason));
                    return Ok(chosen);
                }
                tracing::debug!(%reason, "the portable engine computes");
                return portable(format!("ONNX Runtime cannot be used: {reason}")).await;
            }
            match factory.load(bundle, told, cancel).await {
                Ok(engine) => Ok(Chosen {
                    engine,
                    why: "its library was named".into(),
                    fallback: None,
                }),
                Err(error) if named || config.providers.strict() || !replaceable(&error) => {
                    Err(error)
                }
                Err(error) => {
                    tracing::warn!(%error, "ONNX Runtime cannot run this model; the portable engine takes its place");
                    let mut chosen = portable(format!("ONNX Runtime failed: {error}")).await?;
                    chosen.fallback =
                        Some(Fallback::new("onnxruntime", "portable", error.to_string()));
                    Ok(chosen)
                }
            }
        }
    }
}

/// Whether another engine or provider may fare better.
pub(super) fn replaceable(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::EngineUnavailable { .. }
            | EngineError::ProviderUnavailable { .. }
            | EngineError::DeviceLost { .. }
            | EngineError::UnsupportedOperator { .. }
            | EngineError::UnsupportedModel { .. }
            | EngineError::Runtime { .. }
    )
}
