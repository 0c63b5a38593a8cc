//! One message in, one out, as gRPC has them on HTTP/2
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>): five bytes before a message, and the status behind it.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version};
use axum::response::Response;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use prost::Message;

use crate::failure::{Failure, Kind};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const TIMEOUT: &str = "grpc-timeout";

/// The media type; what stands behind a `+` or `;` says more of the messages.
const KIND: &str = "application/grpc";

/// Whether a message is compressed, and its length.
const HEAD: usize = 5;

/// Refuses what is no gRPC.
pub(super) fn check(version: Version, head: &HeaderMap) -> Result<(), Failure> {
    let given = head.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let rest = given.and_then(|kind| kind.strip_prefix(KIND));
    let is_grpc = rest.is_some_and(|rest| matches!(rest, "" | "+proto") || rest.starts_with(';'));
    if is_grpc && version == Version::HTTP_2 {
        return Ok(());
    }
    let message = format!("this is a method of gRPC: send {KIND} over HTTP/2");
    Err(Failure::new(Kind::MediaType, message))
}

/// The time that a client gives its call, if it says so.
///
/// # Errors
/// What is no time.
pub(super) fn timeout(head: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = head.get(TIMEOUT) else {
        return Ok(None);
    };
    let time = value.to_str().ok().and_then(|text| {
        let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let digits = count.len() <= 8 && count.bytes().all(|digit| digit.is_ascii_digit());
        let count: u64 = digits.then(|| count.parse().ok()).flatten()?;
        Some(match unit {
            "H" => Duration::from_secs(count * 3600),
            "M" => Duration::from_secs(count * 60),
            "S" => Duration::from_secs(count),
            "m" => Duration::from_millis(count),
            "u" => Duration::from_micros(count),
            "n" => Duration::from_nanos(count),
            _ => return None,
        })
    });
    let wrong = || Failure::new(Kind::Invalid, format!("the header {TIMEOUT} is no time"));
    time.map(Some).ok_or_else(wrong)
}

/// The one message of a call.
///
/// # Errors
/// A compressed message, none or more than one, one that is cut short, and one of another form.
pub(super) fn read<M: Message + Default>(mut body: Bytes) -> Result<M, Failure> {
    let wrong = |message: &str| Failure::new(Kind::Invalid, message);
    if body.len() < HEAD {
        return Err(wrong("the call has no message"));
    }
    if body.get_u8() != 0 {
        return Err(Failure::new(
            Kind::Method,
            "compressed messages are not read",
        ));
    }
    let length = body.get_u32() as usize;
    match length.cmp(&body.len()) {
        std::cmp::Ordering::Greater => return Err(wrong("the message is cut short")),
        std::cmp::Ordering::Less => return Err(wrong("the call has more than one message")),
        std::cmp::Ordering::Equal => {}
    }
    M::decode(body).map_err(|error| wrong(&format!("the message cannot be read: {error}")))
}

/// An answer.
pub(super) fn answer(headers: HeaderMap, message: &impl Message) -> Response {
    let length = message.encoded_len();
    let mut body = BytesMut::with_capacity(HEAD + length);
    body.put_u8(0);
    body.put_u32(length as u32);
    // The buffer grows to whatever is written.
    let _ = message.encode(&mut body);
    let ended = async { Some(Ok(HeaderMap::from_iter([(STATUS, HeaderValue::from(0))]))) };
    let body = Full::new(body.freeze()).with_trailers(ended);
    let mut response = Response::new(Body::new(body));
    *response.headers_mut() = headers;
    let kind = HeaderValue::from_static(KIND);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A failure: the status alone, without a message before it.
pub(in super::super) fn failed(failure: &Failure) -> Response {
    let mut response = Response::new(Body::empty());
    // For the log and the metrics, to which every answer of HTTP is otherwise a success.
    response.extensions_mut().insert(failure.kind);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
    headers.insert(STATUS, HeaderValue::from(code(failure.kind)));
    // What is written so is a header's value.
    if let Ok(message) = HeaderValue::from_str(&escaped(&failure.message)) {
        headers.insert(MESSAGE, message);
    }
    response
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
        Kind::TooLarge | Kind::Overloaded => 8,
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::messages::ModelVersion;
    use super::*;

    #[test]
    fn a_call_has_one_message() {
        let message = ModelVersion {
            name: "a".into(),
            version: String::new(),
        };
        let encoded = message.encode_to_vec();
        let framed = [&[0, 0, 0, 0, 3][..], &encoded].concat();
        let read = |bytes: &[u8]| read::<ModelVersion>(Bytes::copy_from_slice(bytes));
        assert_eq!(read(&framed).unwrap(), message);
        assert_eq!(read(&[0; 5]).unwrap(), ModelVersion::default());
        let compressed = [&[1][..], &framed[1..]].concat();
        for (bytes, said) in [
            (&framed[..7], "cut short"),
            (&framed[..4], "no message"),
            (&[][..], "no message"),
            (&[&framed[..], &framed].concat(), "more than one"),
            (&compressed, "compressed"),
            (&[0, 0, 0, 0, 2, 0x0a, 9], "cannot be read"),
            (&[0, 0xff, 0xff, 0xff, 0xff], "cut short"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.message.contains(said), "{bytes:?}: {}", error.message);
        }
    }

    #[test]
    fn times_have_one_of_six_units() {
        let read = |value: &str| {
            let mut head = HeaderMap::new();
            head.insert(TIMEOUT, value.parse().unwrap());
            timeout(&head)
        };
        for (value, micros) in [
            ("1H", 3_600_000_000),
            ("2M", 120_000_000),
            ("3S", 3_000_000),
            ("4m", 4_000),
            ("5u", 5),
            ("6000n", 6),
            ("99999999S", 99_999_999_000_000),
        ] {
            assert_eq!(read(value).unwrap(), Some(Duration::from_micros(micros)));
        }
        for value in ["", "S", "5", "5x", "-5S", "1.5S", "123456789S", "+5S"] {
            assert!(read(value).is_err(), "{value}");
        }
        assert_eq!(timeout(&HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn a_message_of_any_characters_is_a_headers_value() {
        assert_eq!(escaped("50% of \"ä\"\n"), "50%25 of \"%C3%A4\"%0A");
    }
}
