//! What is gRPC's own, and its failures (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;

use crate::failure::{Failure, Kind};

/// What came of a call: gRPC's number for it.
pub const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The media type; what stands behind a `+` or `;` says more of the messages.
pub const KIND: &str = "application/grpc";

/// A failure: the status alone, without a message before it.
pub(super) fn failed(failure: &Failure) -> Response {
    let mut response = Response::new(Body::empty());
    // For the log and the metrics, to which every answer of HTTP is otherwise a success.
    response.extensions_mut().insert(failure.kind);
    let headers = response.headers_mut();
    *headers = ended(failure);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
    response
}

/// What stands behind the messages of a call that ended with a failure.
pub fn ended(failure: &Failure) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert(STATUS, HeaderValue::from(code(failure.kind)));
    // What is written so is a header's value.
    if let Ok(message) = HeaderValue::from_str(&escaped(&failure.message)) {
        trailers.insert(MESSAGE, message);
    }
    trailers
}

/// The status by gRPC's numbers (<https://grpc.github.io/grpc/core/md_doc_statuscodes.html>).
fn code(kind: Kind) -> u16 {
    match kind {
        Kind::Invalid
        | Kind::Tokens
        | Kind::Empty
        | Kind::TooMany
        | Kind::TooManyTokens
        | Kind::MediaType
        | Kind::WrongTask => 3,
        Kind::SlowBody | Kind::TimedOut => 4,
        Kind::NoModel => 5,
        Kind::Forbidden => 7,
        Kind::TooLarge | Kind::NoMemory | Kind::Overloaded => 8,
        Kind::NoRoute | Kind::Method => 12,
        Kind::Broken => 13,
        Kind::Unready => 14,
        Kind::Unauthorized => 16,
    }
}

/// A message as a header has it: what is no visible ASCII, and the sign itself, as `%` and two digits.
fn escaped(message: &str) -> String {
    let mut escaped = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => {
                // A String takes all that is written.
                let _ = write!(escaped, "%{byte:02X}");
            }
            _ => escaped.push(char::from(byte)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_any_characters_is_a_headers_value() {
        assert_eq!(escaped("50% of \"ä\"\n"), "50%25 of \"%C3%A4\"%0A");
    }
}
