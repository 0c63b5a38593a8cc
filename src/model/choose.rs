//! Which engine runs the model.

use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::{EngineChoice, EngineConfig};
use isovec_engine::engine::{Engine, Probe};

use crate::backend;

/// A loaded engine, and why it is this one.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) why: String,
}

/// Loads the model into the engine that the configuration asks for.
///
/// `Auto` is ONNX Runtime where its library was named, else the portable engine. A library that
/// the configuration itself names has to work; one that the environment names may be replaced,
/// with a warning.
pub(crate) async fn choose(
    bundle: &ModelBundle,
    config: &EngineConfig,
    cancel: &Cancel,
) -> Result<Chosen, EngineError> {
    let portable = async |why: String| {
        let engine = backend::portable().load(bundle, config, cancel).await?;
        Ok(Chosen { engine, why })
    };
    let onnxruntime = backend::onnxruntime();
    match config.engine {
        EngineChoice::Portable => portable("it was asked for".into()).await,
        EngineChoice::OnnxRuntime => {
            let factory = onnxruntime.map_err(|reason| EngineError::EngineUnavailable {
                engine: "onnxruntime",
                reason: reason.to_owned(),
                hint: "Choose the engine `portable`".into(),
            })?;
            let engine = factory.load(bundle, config, cancel).await?;
            Ok(Chosen {
                engine,
                why: "it was asked for".into(),
            })
        }
        _ => {
            let named = config.onnxruntime_library.is_some();
            let factory = match onnxruntime {
                Ok(factory) => factory,
                Err(reason) => {
                    return portable(format!("ONNX Runtime is not here: {reason}")).await;
                }
            };
            if !named && let Probe::Unavailable { reason, hint } = factory.probe(config) {
                if std::env::var_os("ORT_DYLIB_PATH").is_some() {
                    tracing::warn!(%reason, %hint, "ONNX Runtime cannot be used; the portable engine takes its place");
                } else {
                    tracing::debug!(%reason, "the portable engine computes");
                }
                return portable(format!("ONNX Runtime cannot be used: {reason}")).await;
            }
            match factory.load(bundle, config, cancel).await {
                Ok(engine) => Ok(Chosen {
                    engine,
                    why: "its library was named".into(),
                }),
                Err(error) if named || !replaceable(&error) => Err(error),
                Err(error) => {
                    tracing::warn!(%error, "ONNX Runtime cannot run this model; the portable engine takes its place");
                    portable(format!("ONNX Runtime failed: {error}")).await
                }
            }
        }
    }
}

/// Whether another engine may fare better.
fn replaceable(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::EngineUnavailable { .. }
            | EngineError::UnsupportedOperator { .. }
            | EngineError::UnsupportedModel { .. }
            | EngineError::Runtime { .. }
    )
}
