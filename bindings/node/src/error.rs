//! Errors for JavaScript, as `isovec-js-error` makes them in wasm.

use napi::bindgen_prelude::{JsObjectValue, JsValue};
use napi::{Env, Error, Result, Status};

/// An `Error` whose `kind` is the stable name that Rust gives the same failure.
pub(crate) fn of(env: &Env, error: &isovec::Error) -> Error {
    with_kind(env, error.kind(), &error.to_string())
}

/// An `Error` with a `kind`.
pub(crate) fn with_kind(env: &Env, kind: &str, message: &str) -> Error {
    made(env, kind, message).unwrap_or_else(|fault| fault)
}

fn made(env: &Env, kind: &str, message: &str) -> Result<Error> {
    let mut error = env.create_error(Error::new(Status::GenericFailure, message))?;
    error.set_named_property("name", "IsovecError")?;
    error.set_named_property("kind", kind)?;
    Ok(error.to_unknown().into())
}
