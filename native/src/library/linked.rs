//! The library that is linked into the program.

use std::path::Path;

use super::{Library, Problem};

/// Looks at the linked library. A path cannot be honoured.
pub(crate) fn probe(asked: Option<&Path>) -> Result<Library, Problem> {
    if let Some(path) = asked {
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
pub(crate) fn commit(asked: Option<&Path>) -> Result<Library, Problem> {
    probe(asked)
}
