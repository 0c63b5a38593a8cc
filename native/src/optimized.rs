//! The graph that ONNX Runtime optimised, for tools that show a model: the nodes that a session runs.

use std::path::Path;

use futures_channel::oneshot;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::cancel::Cancel;
use isovec_engine::config::EngineConfig;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::fresh::FreshFolder;
use isovec_engine::onnx::proto::ModelProto;
use isovec_engine::weights::WeightInfo;

use crate::NAME;
use crate::engine::spawn;
use crate::factory::written_down;
use crate::options::Options;

/// The graph that a session with these options runs, and what is known of its large
/// weights. A session is made for it and ended, with room for the weights once more in memory, and in the
/// system's folder for temporary files as long as it takes.
///
/// # Errors
/// As loading the model; [`EngineError::Runtime`] where the graph cannot be written down, as is so with
/// providers that compile parts of it for their device.
pub async fn optimized(
    bundle: &ModelBundle,
    options: &Options,
    config: &EngineConfig,
    cancel: &Cancel,
) -> Result<(ModelProto, Vec<WeightInfo>)> {
    cancel.check()?;
    let (bundle, options) = (bundle.clone(), options.clone());
    let (config, stop) = (config.clone(), cancel.clone());
    let (reply, answer) = oneshot::channel();
    spawn(move || {
        let _ = reply.send(read(&bundle, &options, config, &stop));
    })?;
    answer.await.unwrap_or_else(|_| {
        Err(EngineError::Runtime {
            engine: NAME,
            doing: "optimising the graph",
            detail: "the thread panicked".into(),
        })
    })
}

fn read(
    bundle: &ModelBundle,
    options: &Options,
    mut config: EngineConfig,
    cancel: &Cancel,
) -> Result<(ModelProto, Vec<WeightInfo>)> {
    let temporary = std::env::temp_dir();
    let folder = FreshFolder::new(&temporary, "isovec-encoder")
        .map_err(|error| failed(&temporary, &error))?;
    config.session.optimized_model_cache = Some(folder.path().to_owned());
    config.session.profiling = None;
    let written = written_down(bundle, options, &config, folder.path(), cancel)?;
    // The file is mapped: it goes before its folder does.
    let weights = written.weights.weights().to_vec();
    Ok((written.graph, weights))
}

fn failed(path: &Path, error: &std::io::Error) -> EngineError {
    EngineError::Runtime {
        engine: NAME,
        doing: "writing the optimised graph",
        detail: format!("{}: {error}", path.display()),
    }
}
