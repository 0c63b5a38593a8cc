//! A request as it goes to a replica, the answer, and what can come in its place.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use isovec_http::{Failure, Kind, grpc};
use tokio::time::Instant;

/// When to try again, if nobody said so.
const AGAIN: Duration = Duration::from_secs(1);

/// A request that can be sent as often as is needed.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) method: Method,
    pub(crate) path: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether it is a call of gRPC, which is HTTP/2.
    pub(crate) is_grpc: bool,
    pub(crate) until: Instant,
    /// How often it was sent before.
    pub(crate) tries: u32,
    /// What the last replica said, if it said something: no room, or not ready.
    pub(crate) last: Option<Answer>,
}

impl Attempt {
    /// Whether asking twice is as good as asking once. All that isovec's servers do for these methods is computing.
    pub(crate) fn is_pure(&self) -> bool {
        [Method::GET, Method::HEAD, Method::OPTIONS, Method::POST].contains(&self.method)
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
    /// Who answered.
    pub(crate) replica: Arc<str>,
    /// How often the request was sent.
    pub(crate) tries: u32,
}

impl Answer {
    /// The status that HTTP has for it. A call of gRPC that failed has gRPC's number in its head: 8 is no room, 14 not ready
    /// (<https://grpc.github.io/grpc/core/md_doc_statuscodes.html>).
    pub(crate) fn meaning(&self) -> StatusCode {
        match self.headers.get(grpc::STATUS).map(HeaderValue::as_bytes) {
            Some(b"8") => StatusCode::TOO_MANY_REQUESTS,
            Some(b"14") => StatusCode::SERVICE_UNAVAILABLE,
            _ => self.status,
        }
    }

    /// As the client gets it.
    pub(crate) fn response(self, asked: &Method) -> Response {
        let body = Full::new(self.body);
        let body = match self.trailers {
            Some(trailers) => Body::new(body.with_trailers(async { Some(Ok(trailers)) })),
            None => Body::new(body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        // The length of what is not sent is the replica's to say.
        if asked != Method::HEAD {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        response
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    /// The replica was not reached; it has seen nothing of the request.
    #[error("no replica could be reached: {0}")]
    Unreached(String),
    /// The connection ended before the whole answer was there.
    #[error("the replica broke off: {0}")]
    Broken(String),
    /// The answer is of other models.
    #[error("the replica is none of the others: {0}")]
    Foreign(String),
    /// The answer is larger than the router holds.
    #[error("the answer is larger than {0} bytes; send the texts in several requests")]
    TooLarge(usize),
    /// The deadline passed.
    #[error("the deadline passed before a replica had answered")]
    Late,
    /// No replica is in rotation.
    #[error("no replica is ready; /status of the router says why")]
    Nobody,
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Self {
        let kind = match &lost {
            Lost::Late => Kind::TimedOut,
            Lost::TooLarge(_) => Kind::Broken,
            _ => Kind::Unready,
        };
        let failure = Failure::new(kind, lost.to_string());
        match kind {
            Kind::Unready => failure.retry_after(AGAIN),
            _ => failure,
        }
    }
}
