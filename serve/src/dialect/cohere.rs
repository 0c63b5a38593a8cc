//! Failures as Cohere's protocol has them; `rerank.rs` has its route.

use axum::response::Response;
use serde_json::json;

use super::floats::small;
use crate::failure::Failure;

/// `{"message"}`.
pub(super) fn failed(failure: &Failure) -> Response {
    let mut response = small(&json!({"message": failure.message}));
    *response.status_mut() = failure.kind.status();
    response
}
