//! The protocol of text-embeddings-inference: `/embed`, `/similarity`, `/info`, `/health`, `/metrics`, as
//! <https://huggingface.github.io/text-embeddings-inference/> describes them.
//!
//! Of its headers those are sent that are measured for each request: `x-compute-type`, `x-compute-time`,
//! `x-total-time`, `x-compute-characters` and `x-compute-tokens`. `x-tokenization-time`, `x-queue-time` and
//! `x-inference-time` are not, because the texts of one request may be in several batches together with those of
//! others; `/metrics` has the sums.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use isovec::config::Truncation;
use isovec::{EmbedOptions, Embeddings, Prompt};
use serde::Deserialize;
use serde_json::json;

use super::Dialect;
use super::floats::{self, Rows, small};
use crate::app::App;
use crate::call::{Call, header, truncated};
use crate::failure::{Failure, Kind};
use crate::object::Object;
use crate::options::MOST_TEXTS;
use crate::texts::Texts;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", post(embed))
        .route("/embed", post(embed))
        .route("/similarity", post(similarity))
        .route("/info", get(info))
        .route("/health", get(health))
        .route("/metrics", get(metrics))
}

/// How texts are read.
#[derive(Debug, Default, Deserialize)]
struct Reading {
    /// Whether texts that are too long are cut (`true` without a word), or refused.
    #[serde(default)]
    truncate: Option<bool>,
    #[serde(default)]
    truncation_direction: Option<Direction>,
    #[serde(default)]
    prompt_name: Option<String>,
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

#[derive(Debug, Deserialize)]
struct Embed {
    inputs: Texts,
    #[serde(default)]
    normalize: Option<bool>,
    #[serde(default)]
    dimensions: Option<usize>,
    #[serde(flatten)]
    reading: Reading,
}

#[derive(Debug, Deserialize)]
struct Compare {
    inputs: Object<Compared>,
    #[serde(default)]
    parameters: Option<Object<Reading>>,
}

#[derive(Debug, Deserialize)]
struct Compared {
    source_sentence: String,
    sentences: Texts,
}

async fn embed(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = embedded(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

async fn embedded(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Embed = call.read(request).await?;
    let texts = asked.inputs.checked("inputs")?;
    let mut options = asked.reading.options(call)?;
    options.dimension = asked.dimensions;
    // Unit length is what this dialect gives unless a request says otherwise.
    options.normalize = Some(asked.normalize.unwrap_or(true));
    let (set, headers) = computed(call, texts, options, &asked.reading).await?;
    floats::json(headers, set, |set| serde_json::to_vec(&Rows(set))).await
}

async fn similarity(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut call = Call::new(app);
    let result = compared(&mut call, request).await;
    call.end(Dialect::Tei, result)
}

/// The cosines of a text and others.
async fn compared(call: &mut Call, request: Request) -> Result<Response, Failure> {
    let asked: Compare = call.read(request).await?;
    let reading = asked
        .parameters
        .map_or_else(Reading::default, |Object(reading)| reading);
    let Object(Compared {
        source_sentence,
        sentences,
    }) = asked.inputs;
    if source_sentence.is_empty() {
        return Err(Failure::field(
            "source_sentence",
            "source_sentence is empty",
        ));
    }
    let mut texts = sentences.checked("sentences")?;
    texts.push(source_sentence);
    let options = reading.options(call)?;
    let (set, headers) = computed(call, texts, options, &reading).await?;
    floats::json(headers, set, |set| serde_json::to_vec(&cosines(set))).await
}

/// The cosine of the last vector with each of the others.
fn cosines(set: &Embeddings) -> Vec<f32> {
    let Some((source, others)) = set.len().checked_sub(1).and_then(|last| {
        let source = set.get(last)?;
        Some((source, set.iter().take(last)))
    }) else {
        return Vec::new();
    };
    others
        .map(|other| isovec::similarity::cosine(source, other))
        .collect()
}

impl Reading {
    /// What it comes to for the served model.
    fn options(&self, call: &Call) -> Result<EmbedOptions, Failure> {
        let embedder = &call.app.model()?.embedder;
        if let Some(direction) = self.truncation_direction {
            let loaded = embedder.effective_config().get("text.truncation");
            if loaded.is_none_or(|loaded| loaded.used != direction.knob().to_string()) {
                return Err(Failure::field(
                    "truncation_direction",
                    format!(
                        "the model was not loaded to cut texts there; load it with text.truncation = {:?}, or leave truncation_direction out",
                        direction.knob().to_string()
                    ),
                ));
            }
        }
        let options = EmbedOptions::default();
        Ok(match &self.prompt_name {
            Some(name) => options.with_prompt(Prompt::Named(name.clone())),
            None => options,
        })
    }
}

/// The vectors of a request that may refuse truncation, and the head of its answer.
async fn computed(
    call: &mut Call,
    texts: Vec<String>,
    options: EmbedOptions,
    reading: &Reading,
) -> Result<(Embeddings, HeaderMap), Failure> {
    let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
    let set = call.embed(texts, options).await?;
    if reading.truncate == Some(false)
        && let Some(text) = truncated(&set).next()
    {
        let most = call.app.model()?.embedder.max_length();
        return Err(Failure::field(
            "truncate",
            format!("text {text} has more than {most} tokens, and truncate is false"),
        ));
    }
    let mut headers = call.describe(&set)?;
    let provider = &call.app.model()?.embedder.provider().provider;
    let took = call.computed();
    let numbers = [
        ("x-compute-type", provider.clone()),
        (
            "x-compute-time",
            took.map_or(0, |done| done.took.as_millis()).to_string(),
        ),
        (
            "x-total-time",
            call.started.elapsed().as_millis().to_string(),
        ),
        ("x-compute-characters", characters.to_string()),
        (
            "x-compute-tokens",
            took.map_or(0, |done| done.tokens).to_string(),
        ),
    ];
    for (name, value) in numbers {
        headers.insert(HeaderName::from_static(name), header(value));
    }
    Ok((set, headers))
}

async fn info(State(app): State<Arc<App>>) -> Response {
    let served = match app.model() {
        Ok(served) => served,
        Err(failure) => return Dialect::Tei.failed(&failure),
    };
    let embedder = &served.embedder;
    let fingerprint = embedder.fingerprint();
    small(&json!({
        "model_id": served.name,
        "model_sha": null,
        "model_dtype": fingerprint.precision.to_string(),
        "model_type": {"embedding": {"pooling": fingerprint.identity.get("pooling")}},
        "max_concurrent_requests": app.options.max_requests,
        "max_input_length": embedder.max_length(),
        "max_batch_tokens": served.batcher.counts().batch_tokens,
        "max_batch_requests": null,
        "max_client_batch_size": MOST_TEXTS,
        "auto_truncate": true,
        "version": env!("CARGO_PKG_VERSION"),
        "sha": null,
        "docker_label": null,
        // What text-embeddings-inference does not have.
        "dimension": embedder.dimension(),
        "similarity": embedder.metric(),
        "fingerprint": {"id": fingerprint.id(), "identity": fingerprint.identity},
        "provider": embedder.provider(),
    }))
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

/// `{"error", "error_type"}`.
pub(super) fn failed(failure: &Failure) -> Response {
    let sort = match failure.kind {
        Kind::Empty => "empty",
        Kind::Tokens => "tokenizer",
        Kind::Overloaded => "overloaded",
        Kind::Unready => "unhealthy",
        Kind::TimedOut | Kind::Broken => "backend",
        _ => "validation",
    };
    let mut response = small(&json!({"error": failure.message, "error_type": sort}));
    *response.status_mut() = match failure.kind {
        Kind::Invalid | Kind::Tokens => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::TooMany => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Broken => StatusCode::FAILED_DEPENDENCY,
        kind => kind.status(),
    };
    response
}
