//! What a panic said, kept for the error that names it: after a trap only plain reads are safe.

use std::sync::{Mutex, Once, PoisonError};

use wasm_bindgen::prelude::wasm_bindgen;

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Remembers panics from now on. Idempotent.
pub(crate) fn remember() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string());
        }));
    });
}

/// The message and place of the last panic, if there was one.
#[wasm_bindgen(js_name = lastPanic)]
pub fn last_panic() -> Option<String> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
