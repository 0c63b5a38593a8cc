//! Stores the message of a panic for the error that quotes it. After a trap only plain reads are safe.

use std::panic::PanicHookInfo;
use std::sync::{Mutex, Once, PoisonError};

use wasm_bindgen::prelude::wasm_bindgen;

static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Remembers panics from now on. Idempotent.
pub(crate) fn remember() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            // The first is the cause: a worker's panic ends the run that waits for it.
            let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| said(info));
        }));
    });
}

/// The message and its place: in what npm ships the line alone, because the names of files are left out of it.
fn said(info: &PanicHookInfo<'_>) -> String {
    let place = info
        .location()
        .map(|place| match (place.file(), place.line()) {
            ("<redacted>", line) => format!("line {line}"),
            (file, line) => format!("{file}:{line}"),
        });
    format!(
        "panicked at {}: {}",
        place.as_deref().unwrap_or("an unknown place"),
        info.payload_as_str().unwrap_or("without a message")
    )
}

/// The message and place of the first panic, if there was one.
#[wasm_bindgen(js_name = lastPanic)]
pub fn last_panic() -> Option<String> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
