//! Failures as Cohere's protocol has them; `rerank.rs` has its route.

use axum::response::Response;
use serde_json::{Value, json};

use super::floats::small;
use crate::failure::Failure;
use crate::schema::{needed, object, text};

/// The schema of a failure.
pub(super) fn error_schema() -> Value {
    object([needed("message", text())])
}

/// `{"message"}`.
pub(super) fn failed(failure: &Failure) -> Response {
    let mut response = small(&json!({"message": failure.message}));
    *response.status_mut() = failure.kind.status();
    response
}
