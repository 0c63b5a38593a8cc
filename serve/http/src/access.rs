//! What lines of the log and metrics say of every request.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;

use crate::failure::Kind;
use crate::header::header;

/// A client's own id for its request, or one that the server gives it; in the answer and in the log.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a client's id, at most.
const LONGEST_ID: usize = 128;

/// The status in the log and the metrics of a request whose client went away, as nginx has it.
pub const CLIENT_WENT: u16 = 499;

/// A method that HTTP has; any other word of a client belongs in no log.
pub fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// The id that a request goes by: its own, or a new one.
pub fn id(request: &Request) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID);
    let usable = given.filter(|id| id.len() <= LONGEST_ID && id.to_str().is_ok());
    usable.cloned().unwrap_or_else(new_id)
}

/// The status of an answer in the log and the metrics. gRPC has a status of its own, and HTTP's says that there is one: a call that
/// failed has the one that HTTP has for its cause.
pub fn status(response: &mut Response) -> u16 {
    let failed: Option<Kind> = response.extensions_mut().remove();
    failed.map_or(response.status(), Kind::status).as_u16()
}

/// The process's start in microseconds, and a number.
fn new_id() -> HeaderValue {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static START: OnceLock<u64> = OnceLock::new();
    let start = START.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_micros() as u64)
    });
    header(format!(
        "{start:x}-{:x}",
        NEXT.fetch_add(1, Ordering::Relaxed)
    ))
}
