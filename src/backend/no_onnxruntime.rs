//! Where there is no engine that needs a shared library.

use std::sync::Arc;

use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::engine::EngineFactory;
use isovec_engine::onnx::proto::ModelProto;
use isovec_engine::weights::WeightInfo;
use isovec_engine::{EngineError, Result};

use crate::config::{ExecutionProvider, RuntimeConfig};

/// Why there is none.
const WHY: &str = if cfg!(target_arch = "wasm32") {
    "browsers load no shared libraries"
} else {
    "isovec was built without its feature `onnxruntime`"
};

/// Says why there is none.
pub(crate) fn onnxruntime(
    _config: &RuntimeConfig,
    _provider: ExecutionProvider,
) -> std::result::Result<Arc<dyn EngineFactory>, &'static str> {
    Err(WHY)
}

/// What that engine makes of a graph; nobody has one to ask.
pub(crate) async fn optimized(
    _bundle: &ModelBundle,
    _config: &RuntimeConfig,
    _provider: ExecutionProvider,
    _cancel: &Cancel,
) -> Result<(ModelProto, Vec<WeightInfo>)> {
    Err(EngineError::EngineUnavailable {
        engine: "onnxruntime",
        reason: "isovec was built without it".into(),
        hint: "Build isovec with its feature `onnxruntime`".into(),
    })
}
