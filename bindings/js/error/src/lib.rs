//! Converts errors for JavaScript, the same way in every module of the npm package.

use js_sys::{Error as JsError, Reflect};
use wasm_bindgen::JsValue;

/// An `Error` whose `kind` is the stable name that Rust gives the same failure.
pub fn to_js(error: &isovec::Error) -> JsValue {
    with_kind(error.kind(), &error.to_string())
}

/// An `Error` with a `kind`.
pub fn with_kind(kind: &str, message: &str) -> JsValue {
    let error = JsError::new(message);
    error.set_name("IsovecError");
    // Setting a property of a fresh, extensible object cannot fail.
    let _ = Reflect::set(&error, &"kind".into(), &kind.into());
    error.into()
}
