//! The wire under the hub client: one request, its status and headers, and its body in chunks.
//!
//! Natively that is [`HttpTransport`](super::HttpTransport); a browser implements the same trait
//! over `fetch`. Everything above (redirects, retries, resume, checksums) is shared.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use isovec_engine::maybe_send::{BoxFuture, MaybeSend, MaybeSync};
use web_time::Instant;

use super::url::Url;

/// The two methods that a hub needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Headers and body.
    Get,
    /// Headers alone.
    Head,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where to: `http` or `https`.
    pub url: Url,
    /// Header names in lower case, with their values.
    pub headers: Vec<(&'static str, String)>,
}

/// A response whose body is not read yet.
pub struct Response {
    /// The HTTP status, redirects included.
    pub status: u16,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Box<dyn Body>,
}

impl Response {
    /// The first value of a header, its name given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// How the body is coded, where it is.
    pub(super) fn coding(&self) -> Option<&str> {
        let coding = self.header("content-encoding")?.trim();
        (!coding.is_empty() && !coding.eq_ignore_ascii_case("identity")).then_some(coding)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// A body that arrives in chunks.
pub trait Body: MaybeSend {
    /// The next chunk, `None` at the end. A connection that was cut, or that ended before its
    /// declared length, is a [`TransportFailure`], never an early `None`.
    fn next_chunk(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, TransportFailure>>;
}

/// Sends requests. Object-safe; dropping a future or a body gives up the connection.
pub trait Transport: MaybeSend + MaybeSync + fmt::Debug {
    /// Sends one request and waits for the headers of its answer.
    ///
    /// Redirects are returned unchanged, and the client follows them. A transport that has to follow them itself
    /// (`fetch`) must drop the `authorization` header when the origin changes, as `fetch` does. No content encoding
    /// may be undone: the bytes are checksummed.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportFailure>>;

    /// Completes after that time; used between retries.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;

    /// The time of a monotonic clock, which measures how fast bodies arrive.
    fn now(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// Why no answer, or no whole answer, came.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{detail}")]
#[non_exhaustive]
pub struct TransportFailure {
    /// The failure, in words.
    pub detail: String,
    /// Whether the same request may do better a moment later: a cut connection may, a
    /// certificate that is not trusted may not.
    pub transient: bool,
}

impl TransportFailure {
    /// A failure that may pass.
    pub fn transient(detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            transient: true,
        }
    }

    /// A failure that will not pass by itself.
    pub fn permanent(detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            transient: false,
        }
    }
}
