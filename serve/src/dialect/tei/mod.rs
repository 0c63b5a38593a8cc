//! The protocol of text-embeddings-inference: `/embed`, `/embed_all`, `/embed_sparse`, `/similarity`, `/predict`, `/tokenize`, `/decode`,
//! `/info`, `/health`, `/metrics`, as
//! <https://huggingface.github.io/text-embeddings-inference/> describes them; `../rerank.rs` has `/rerank`.
//!
//! Of its headers those are sent that are measured for each request: `x-compute-type`, `x-compute-time`,
//! `x-total-time`, `x-compute-characters` and `x-compute-tokens`. `x-tokenization-time`, `x-queue-time` and
//! `x-inference-time` are not, because the texts of one request may be in several batches together with those of
//! others; `/metrics` has the sums.
//!
//! Its requests name no model. Here they may: the field `model` chooses one of several.

mod embed;
mod embed_all;
mod info;
mod predict;
mod sparse;
mod tokens;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use isovec::config::Truncation;
use isovec_http::{Dialect, header};
use serde::Deserialize;
use serde_json::Value;

use crate::app::App;
use crate::call::Call;
use crate::failure::Failure;
use crate::route::Route;
use crate::schema::{Field, boolean, needed, object, one_of, optional, text};
use crate::served::Served;

pub(super) fn routes() -> Vec<Route> {
    let mut routes = embed::routes();
    routes.extend(tokens::routes());
    routes.extend([
        predict::route(),
        sparse::route(),
        embed_all::route(),
        info::route(),
        Route::get("/health", health, "Whether a request would be computed."),
        Route::get("/metrics", metrics, "What was counted, in OpenMetrics."),
    ]);
    routes
}

/// The schemas of [`Reading`].
fn reading() -> [Field; 2] {
    [
        optional(
            "truncate",
            boolean("Whether texts that are too long are cut, or refused."),
        ),
        optional("truncation_direction", one_of(&["Left", "Right"])),
    ]
}

/// The schema of a failure.
pub(super) fn error_schema() -> Value {
    object([needed("error", text()), needed("error_type", text())])
}

/// How texts are read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reading {
    /// Whether texts that are too long are cut (`true` without a word), or refused.
    #[serde(default)]
    truncate: Option<bool>,
    #[serde(default)]
    truncation_direction: Option<Direction>,
}

/// The end of a text at which it is cut if it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Direction {
    #[serde(alias = "left")]
    Left,
    #[serde(alias = "right")]
    Right,
}

impl Direction {
    /// The value of `text.truncation` that cuts there.
    fn knob(self) -> Truncation {
        match self {
            Self::Left => Truncation::KeepTail,
            Self::Right => Truncation::KeepHead,
        }
    }
}

impl Reading {
    /// Refuses to cut texts at an end at which the model was not loaded to cut them.
    pub(super) fn check(&self, served: &Served) -> Result<(), Failure> {
        let Some(direction) = self.truncation_direction else {
            return Ok(());
        };
        let loaded = served.effective_config().get("text.truncation");
        if loaded.is_some_and(|loaded| loaded.used == direction.knob().to_string()) {
            return Ok(());
        }
        Err(Failure::field(
            "truncation_direction",
            format!(
                "the model was not loaded to cut texts there; load it with text.truncation = {:?}, or leave truncation_direction out",
                direction.knob().to_string()
            ),
        ))
    }

    /// Refuses what was computed of a part of a text, where that was not wanted.
    pub(super) fn check_whole(&self, call: &Call, served: &Served) -> Result<(), Failure> {
        match call.truncated().first() {
            Some(text) if self.truncate == Some(false) => {
                let most = served.max_length();
                Err(Failure::field(
                    "truncate",
                    format!("text {text} has more than {most} tokens, and truncate is false"),
                ))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn characters<'a>(texts: impl IntoIterator<Item = &'a String>) -> usize {
    texts.into_iter().map(|text| text.chars().count()).sum()
}

/// The head of an answer.
pub(super) fn headers(
    call: &Call,
    served: &Served,
    fingerprint: String,
    characters: usize,
) -> HeaderMap {
    let mut headers = call.describe(served, fingerprint);
    let took = call.computed().map_or(0, |done| done.took.as_millis());
    let numbers = [
        ("x-compute-type", served.provider().provider.clone()),
        ("x-compute-time", took.to_string()),
        (
            "x-total-time",
            call.started.elapsed().as_millis().to_string(),
        ),
        ("x-compute-characters", characters.to_string()),
        ("x-compute-tokens", call.tokens().to_string()),
    ];
    for (name, value) in numbers {
        headers.insert(HeaderName::from_static(name), header(value));
    }
    headers
}

/// Readiness, as this dialect says it: 200 without a body.
async fn health(State(app): State<Arc<App>>) -> Response {
    match app.ready().await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(failure) => Dialect::Tei.failed(&failure),
    }
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    app.metrics.page()
}
