//! Panics of the runtime underneath, turned into errors.
//!
//! Where panics abort (the browser) there is nothing to catch, and the instance is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};

use isovec_engine::{EngineError, Result};

use crate::ENGINE;

/// Runs `work`; a panic becomes `Err` with its message.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // What the closure may leave half-changed is never used again: callers drop it on `Err`.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        panic
            .downcast_ref::<&str>()
            .map(|message| (*message).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".into())
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_keeps_its_message() {
        let error = runtime::<()>("testing", || panic!("row {} is missing", 3)).unwrap_err();
        assert!(error.to_string().contains("row 3 is missing"), "{error}");
        assert_eq!(runtime("testing", || Ok(5)).unwrap(), 5);
    }
}
