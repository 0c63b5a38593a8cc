//! The one ONNX Runtime of the process.

use std::path::Path;
use std::sync::OnceLock;

use isovec_engine::error::{EngineError, Result};

use crate::explain;
use crate::library::{self, Library};
use crate::sys::Env;

/// A loaded library with a reference to its environment, which lives as long as the process:
/// ONNX Runtime does not promise that a second one can be made after the first is gone.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) library: Library,
    pub(crate) env: Env,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// The process's runtime, loaded at the first call, from the library that was asked for if one was.
pub(crate) fn runtime(asked: Option<&Path>) -> Result<&'static Runtime> {
    // Before looking at the one that is there: the caller may insist on another library.
    let library = library::commit(asked)?;
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let env = Env::new().map_err(|error| EngineError::Runtime {
        engine: crate::NAME,
        doing: "making its environment",
        detail: explain::text(&error),
    })?;
    // Two threads may come here; the environment counts its references, so one too many is let go.
    Ok(RUNTIME.get_or_init(|| Runtime { library, env }))
}
