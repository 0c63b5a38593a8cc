//! The messages of a hub's failures.

use isovec_engine::error::EngineError;

/// A hub's failure: what was asked for, what came back, what to do.
pub(crate) fn hub_error(
    url: impl Into<String>,
    detail: impl Into<String>,
    hint: impl Into<String>,
) -> EngineError {
    EngineError::Hub {
        url: url.into(),
        detail: detail.into(),
        hint: hint.into(),
    }
}
