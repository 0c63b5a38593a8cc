//! tract's panics, as errors.

use isovec_engine::{EngineError, Result};

use crate::ENGINE;
use crate::guard::catch;

/// Runs `work`, which fails with the engine's own errors; a panic becomes
/// [`EngineError::Runtime`].
pub(crate) fn runtime<T>(doing: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch(work).unwrap_or_else(|detail| {
        Err(EngineError::Runtime {
            engine: ENGINE,
            doing,
            detail: format!("panicked: {detail}"),
        })
    })
}
