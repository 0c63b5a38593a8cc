//! Whether the process lives, and whether it would answer: two questions with two answers.
//!
//! A process that is starting, draining or stuck is alive, and restarting it would only lose what it is doing; but no new
//! request should go there.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use crate::app::App;
use crate::dialect::{Dialect, small};

/// Below these no key is asked for.
pub(crate) const PATH: &str = "/health";

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
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
