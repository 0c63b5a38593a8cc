//! Panics of the runtime underneath, turned into errors.
//!
//! Where panics abort (the browser) there is nothing to catch, and the instance is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_keeps_its_message() {
        let message = catch(|| panic!("row {} is missing", 3)).unwrap_err();
        assert_eq!(message, "row 3 is missing");
        assert_eq!(catch(|| 5), Ok(5));
    }
}
