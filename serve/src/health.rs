//! Whether the process lives, and whether it would answer: two questions with two answers.
//!
//! A process that is starting, draining or stuck is alive, and restarting it would only lose what it is doing; but no new
//! request should go there.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use isovec_http::{Dialect, GRPC_HEALTH, small};
use serde_json::json;

use crate::app::App;
use crate::route::Route;
use crate::schema::{needed, object, text};

/// Whether a path asks for health, for which no key is needed.
pub(crate) fn is_asked_by(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or_default();
    ["health", "v2/health", GRPC_HEALTH].iter().any(|health| {
        path.strip_prefix(health)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

pub(crate) fn routes() -> [Route; 2] {
    let status = || object([needed("status", text())]);
    let alive = "Whether the process answers.";
    [
        Route::get("/health/live", live, alive).gives(status()),
        Route::get(
            "/health/ready",
            ready,
            "Whether a request would be computed.",
        )
        .gives(status()),
    ]
}

async fn live() -> Response {
    small(&json!({"status": "live"}))
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.ready().await {
        Ok(()) => small(&json!({"status": "ready"})),
        Err(failure) => Dialect::Tei.failed(&failure),
    }
}
