//! The library that is linked into the program.

use isovec_engine::config::EngineConfig;

use super::{Library, Problem};

/// Looks at the linked library. A path in the config cannot be honoured.
pub(crate) fn probe(config: &EngineConfig) -> Result<Library, Problem> {
    if let Some(path) = &config.onnxruntime_library {
        return Err(Problem::new(
            format!(
                "ONNX Runtime is linked into this program, which cannot load {}",
                path.display()
            ),
            "Leave onnxruntime_library out, or build with the feature `onnxruntime` instead of \
             `onnxruntime-download`",
        ));
    }
    // SAFETY: linked into the program, never unloaded.
    match unsafe { super::version(ort::sys::OrtGetApiBase()) } {
        Ok(version) => Ok(Library {
            path: None,
            version,
        }),
        Err(reason) => Err(Problem::new(
            format!("the ONNX Runtime linked into this program cannot be used: {reason}"),
            "Build from a clean target folder",
        )),
    }
}

/// Nothing is left to load.
pub(crate) fn commit(config: &EngineConfig) -> Result<Library, Problem> {
    probe(config)
}
