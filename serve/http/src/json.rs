//! Small answers in JSON.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

/// A value in JSON, which is not large.
pub fn small(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (json, body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
