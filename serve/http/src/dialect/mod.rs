//! How each protocol says that a request failed.

pub mod grpc;

use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

use crate::failure::{Failure, Kind};
use crate::header::{RETRY_AFTER_MS, header};
use crate::json::small;

/// The service of the Open Inference Protocol over gRPC, as paths begin.
pub const GRPC_SERVICE: &str = "inference.GRPCInferenceService";

/// The service that says how others are (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).
pub const GRPC_HEALTH: &str = "grpc.health.v1.Health";

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's: everything under `/v1/`.
    OpenAi,
    /// Cohere's: everything under `/v2/` that is not of the next.
    Cohere,
    /// The Open Inference Protocol: `/v2`, and what is under `/v2/health`, `/v2/models` and `/v2/repository`.
    Oip,
    /// The same over gRPC: what is under the name of its service, and that of health.
    Grpc,
    /// That of text-embeddings-inference: everything else.
    Tei,
}

impl Dialect {
    /// The dialect that a path belongs to, whether there is such a route or not.
    pub fn of(path: &str) -> Self {
        let mut parts = path.split('/').skip(1);
        match (parts.next(), parts.next()) {
            (Some("v1"), _) => Self::OpenAi,
            (Some("v2"), None | Some("health" | "models" | "repository")) => Self::Oip,
            (Some("v2"), _) => Self::Cohere,
            (Some(GRPC_SERVICE | GRPC_HEALTH), _) => Self::Grpc,
            _ => Self::Tei,
        }
    }

    /// The name of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI, Jina",
            Self::Cohere => "Cohere",
            Self::Oip | Self::Grpc => "Open Inference Protocol",
            Self::Tei => "text-embeddings-inference",
        }
    }

    /// A failure as this dialect has it, with the time to try again.
    pub fn failed(self, failure: &Failure) -> Response {
        if failure.kind == Kind::Broken {
            tracing::error!(message = failure.message);
        }
        let mut response = match self {
            Self::OpenAi => openai(failure),
            Self::Cohere => cohere(failure),
            Self::Oip => oip(failure),
            Self::Grpc => grpc::failed(failure),
            Self::Tei => tei(failure),
        };
        let headers = response.headers_mut();
        if let Some(wait) = failure.retry_after {
            let millis = wait.as_millis().max(1);
            let seconds = millis.div_ceil(1000);
            headers.insert(RETRY_AFTER, header(seconds.to_string()));
            headers.insert(RETRY_AFTER_MS, header(millis.to_string()));
        }
        if matches!(failure.kind, Kind::Unready | Kind::SlowBody) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// `{"error": {message, type, param, code}}`.
fn openai(failure: &Failure) -> Response {
    let code = match failure.kind {
        Kind::Invalid | Kind::Tokens => None,
        Kind::Empty => Some("empty_array"),
        Kind::TooMany => Some("array_above_max_length"),
        Kind::TooManyTokens => Some("max_tokens_per_request"),
        Kind::TooLarge => Some("request_too_large"),
        Kind::MediaType => Some("unsupported_media_type"),
        Kind::SlowBody | Kind::TimedOut => Some("timeout"),
        Kind::NoRoute => Some("unknown_url"),
        Kind::Method => Some("method_not_supported"),
        Kind::Unauthorized => Some("invalid_api_key"),
        Kind::Forbidden => Some("not_allowed"),
        Kind::NoMemory => Some("insufficient_memory"),
        Kind::NoModel => Some("model_not_found"),
        Kind::WrongTask => Some("model_not_supported"),
        Kind::Overloaded => Some("rate_limit_exceeded"),
        Kind::Unready => Some("service_unavailable"),
        Kind::Broken => Some("internal_error"),
    };
    let sort = match failure.kind {
        Kind::Overloaded => "rate_limit_error",
        Kind::Unauthorized => "authentication_error",
        Kind::Unready | Kind::TimedOut | Kind::NoMemory | Kind::Broken => "server_error",
        _ => "invalid_request_error",
    };
    let mut response = small(&json!({"error": {
        "message": failure.message,
        "type": sort,
        "param": failure.field,
        "code": code,
    }}));
    *response.status_mut() = failure.kind.status();
    response
}

/// `{"message"}`.
fn cohere(failure: &Failure) -> Response {
    let mut response = small(&json!({"message": failure.message}));
    *response.status_mut() = failure.kind.status();
    response
}

/// `{"error"}`.
fn oip(failure: &Failure) -> Response {
    let mut response = small(&json!({"error": failure.message}));
    *response.status_mut() = failure.kind.status();
    response
}

/// `{"error", "error_type"}`.
fn tei(failure: &Failure) -> Response {
    let sort = match failure.kind {
        Kind::Empty => "empty",
        Kind::Tokens => "tokenizer",
        Kind::Overloaded => "overloaded",
        Kind::Unready => "unhealthy",
        Kind::TimedOut | Kind::Broken | Kind::WrongTask => "backend",
        _ => "validation",
    };
    let mut response = small(&json!({"error": failure.message, "error_type": sort}));
    *response.status_mut() = match failure.kind {
        Kind::Invalid | Kind::Tokens => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::TooMany => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Broken | Kind::WrongTask => StatusCode::FAILED_DEPENDENCY,
        kind => kind.status(),
    };
    response
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds_and_exactly() {
        for (micros, seconds, millis) in [
            (0, "1", "1"),
            (1_200, "1", "1"),
            (999_000, "1", "999"),
            (1_001_000, "2", "1001"),
            (60_000_000, "60", "60000"),
        ] {
            let failure =
                Failure::new(Kind::Overloaded, "full").retry_after(Duration::from_micros(micros));
            for dialect in [Dialect::OpenAi, Dialect::Cohere, Dialect::Oip, Dialect::Tei] {
                let response = dialect.failed(&failure);
                assert_eq!(response.status(), 429);
                assert_eq!(response.headers()[RETRY_AFTER], seconds);
                assert_eq!(response.headers()[RETRY_AFTER_MS], millis);
            }
        }
    }

    #[test]
    fn a_path_without_a_route_has_a_dialect_too() {
        assert_eq!(Dialect::of("/v1/nothing"), Dialect::OpenAi);
        assert_eq!(Dialect::of("/v1"), Dialect::OpenAi);
        assert_eq!(Dialect::of("/v2/nothing"), Dialect::Cohere);
        assert_eq!(Dialect::of("/v2"), Dialect::Oip);
        assert_eq!(Dialect::of("/v2/models/a/b/nothing"), Dialect::Oip);
        assert_eq!(
            Dialect::of("/inference.GRPCInferenceService/Nothing"),
            Dialect::Grpc
        );
        let health = Dialect::of("/grpc.health.v1.Health/Check");
        assert_eq!(health, Dialect::Grpc);
        assert_eq!(Dialect::of("/v10"), Dialect::Tei);
        assert_eq!(Dialect::of("/embed/v1"), Dialect::Tei);
        assert_eq!(Dialect::of("/embed"), Dialect::Tei);
    }
}
