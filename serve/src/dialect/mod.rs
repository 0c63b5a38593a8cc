//! The protocols that are spoken, one file each. A dialect reads its own requests, and says vectors and failures in its
//! own form; everything between is `call.rs`.

mod cohere;
mod floats;
mod grpc;
mod oip;
mod openai;
mod rerank;
mod tei;

use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde_json::Value;

use crate::call::header;
use crate::failure::{Failure, Kind};
use crate::route::Route;

pub(crate) use self::floats::small;
pub(crate) use self::grpc::router as grpc_router;
pub(crate) use self::oip::fold;

/// The exact time of `retry-after`, which only has whole seconds, as OpenAI's clients read it.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI's: everything under `/v1/`.
    OpenAi,
    /// Cohere's: everything under `/v2/` that is not of the next.
    Cohere,
    /// The Open Inference Protocol: `/v2`, and what is under `/v2/health`, `/v2/models` and `/v2/repository`.
    Oip,
    /// The same over gRPC: what is under the name of its service.
    Grpc,
    /// That of text-embeddings-inference: everything else.
    Tei,
}

/// The routes of all dialects.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = openai::routes();
    routes.extend(rerank::routes());
    routes.extend(oip::routes());
    routes.extend(tei::routes());
    routes
}

impl Dialect {
    /// The dialect that a path belongs to, whether there is such a route or not.
    pub(crate) fn of(path: &str) -> Self {
        let mut parts = path.split('/').skip(1);
        match (parts.next(), parts.next()) {
            (Some("v1"), _) => Self::OpenAi,
            (Some("v2"), None | Some("health" | "models" | "repository")) => Self::Oip,
            (Some("v2"), _) => Self::Cohere,
            (Some(grpc::SERVICE), _) => Self::Grpc,
            _ => Self::Tei,
        }
    }

    /// The name of the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI, Jina",
            Self::Cohere => "Cohere",
            Self::Oip | Self::Grpc => "Open Inference Protocol",
            Self::Tei => "text-embeddings-inference",
        }
    }

    /// The schema of a failure.
    pub(crate) fn error_schema(self) -> Value {
        match self {
            Self::OpenAi => openai::error_schema(),
            Self::Cohere => cohere::error_schema(),
            // It has no JSON, and no part of the document.
            Self::Oip | Self::Grpc => oip::error_schema(),
            Self::Tei => tei::error_schema(),
        }
    }

    /// A failure as this dialect has it, with the time to try again.
    pub(crate) fn failed(self, failure: &Failure) -> Response {
        if failure.kind == Kind::Broken {
            tracing::error!(message = failure.message);
        }
        let mut response = match self {
            Self::OpenAi => openai::failed(failure),
            Self::Cohere => cohere::failed(failure),
            Self::Oip => oip::failed(failure),
            Self::Grpc => grpc::failed(failure),
            Self::Tei => tei::failed(failure),
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
        assert_eq!(Dialect::of("/v10"), Dialect::Tei);
        assert_eq!(Dialect::of("/embed/v1"), Dialect::Tei);
        assert_eq!(Dialect::of("/embed"), Dialect::Tei);
    }
}
