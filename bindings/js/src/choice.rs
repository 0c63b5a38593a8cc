//! The choice of a model's files, for a page that fetches them.

use isovec::for_npm::next_told;
use isovec_js_error::to_js;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// The next question about a model's files, or the choice: takes and returns JSON, as [`isovec::for_npm::next_told`].
///
/// # Errors
/// An `Error` with the `kind` of the Rust error.
#[wasm_bindgen(js_name = chooseFiles)]
pub fn choose_files(known: &str) -> Result<String, JsValue> {
    next_told(known).map_err(|error| to_js(&error.into()))
}
