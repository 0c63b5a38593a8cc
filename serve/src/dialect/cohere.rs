//! How failures look in Cohere's protocol; `rerank.rs` has its route.

use serde_json::Value;

use crate::schema::{needed, object, text};

/// The schema of a failure.
pub(super) fn error_schema() -> Value {
    object([needed("message", text())])
}
