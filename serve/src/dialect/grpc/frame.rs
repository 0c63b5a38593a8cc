//! Messages as gRPC has them on HTTP/2
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>): five bytes before a message, and the status behind it.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version};
use axum::response::Response;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use isovec_http::coding::Coding;
use isovec_http::grpc::{self, KIND, STATUS};
use prost::Message;

use crate::failure::{Failure, Kind};

/// How the messages of a call are compressed, and what the server reads.
pub(super) const ENCODING: &str = "grpc-encoding";
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const ACCEPTED: &str = "identity,gzip,zstd";

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

/// How messages of a call are compressed that say that they are; `None` if none is.
///
/// # Errors
/// A coding that is not known.
pub(super) fn coding(head: &HeaderMap) -> Result<Option<Coding>, Failure> {
    let Some(given) = head.get(ENCODING) else {
        return Ok(None);
    };
    if given == "identity" {
        return Ok(None);
    }
    let coding = given.to_str().ok().and_then(|name| name.parse().ok());
    coding.map(Some).ok_or_else(|| {
        let message = format!("the {ENCODING} is not known; send {ACCEPTED}");
        Failure::new(Kind::Method, message)
    })
}

/// The bytes of the one message of a call, and whether they are compressed.
///
/// # Errors
/// No message or more than one, and one that is cut short.
pub(super) fn message(mut body: Bytes) -> Result<(bool, Bytes), Failure> {
    let wrong = |message: &str| Failure::new(Kind::Invalid, message);
    if body.len() < HEAD {
        return Err(wrong("the call has no message"));
    }
    let is_compressed = body.get_u8() != 0;
    let length = body.get_u32() as usize;
    match length.cmp(&body.len()) {
        std::cmp::Ordering::Greater => Err(wrong("the message is cut short")),
        std::cmp::Ordering::Less => Err(wrong("the call has more than one message")),
        std::cmp::Ordering::Equal => Ok((is_compressed, body)),
    }
}

/// The message that bytes are.
///
/// # Errors
/// Those of another form.
pub(super) fn read<M: Message + Default>(message: Bytes) -> Result<M, Failure> {
    M::decode(message).map_err(|error| {
        let message = format!("the message cannot be read: {error}");
        Failure::new(Kind::Invalid, message)
    })
}

/// An answer.
pub(super) fn answer(headers: HeaderMap, message: &impl Message) -> Response {
    let ended = async { Some(Ok(HeaderMap::from_iter([(STATUS, HeaderValue::from(0))]))) };
    let body = Full::new(framed(message)).with_trailers(ended);
    with_head(headers, Body::new(body))
}

/// An answer of several messages, which ends with a failure.
pub(super) fn answers<M: Message>(
    messages: impl Stream<Item = Result<M, Failure>> + Send + 'static,
) -> Response {
    let frames = messages.map(|message| {
        Ok::<_, Infallible>(match message {
            Ok(message) => Frame::data(framed(&message)),
            Err(failure) => Frame::trailers(grpc::ended(&failure)),
        })
    });
    with_head(HeaderMap::new(), Body::new(StreamBody::new(frames)))
}

/// A message with what stands before it.
fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut body = BytesMut::with_capacity(HEAD + length);
    body.put_u8(0);
    body.put_u32(length as u32);
    // The buffer grows to whatever is written.
    let _ = message.encode(&mut body);
    body.freeze()
}

fn with_head(headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    let kind = HeaderValue::from_static(KIND);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    let accepted = HeaderValue::from_static(ACCEPTED);
    response.headers_mut().insert(ACCEPT_ENCODING, accepted);
    response
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
        let read = |bytes: &[u8]| {
            let (is_compressed, bytes) = super::message(Bytes::copy_from_slice(bytes))?;
            assert!(!is_compressed);
            read::<ModelVersion>(bytes)
        };
        assert_eq!(read(&framed).unwrap(), message);
        assert_eq!(read(&[0; 5]).unwrap(), ModelVersion::default());
        let compressed = Bytes::from([&[1][..], &framed[1..]].concat());
        assert_eq!(
            super::message(compressed).unwrap(),
            (true, encoded.clone().into())
        );
        for (bytes, said) in [
            (&framed[..7], "cut short"),
            (&framed[..4], "no message"),
            (&[][..], "no message"),
            (&[&framed[..], &framed].concat(), "more than one"),
            (&[0, 0, 0, 0, 2, 0x0a, 9], "cannot be read"),
            (&[0, 0xff, 0xff, 0xff, 0xff], "cut short"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.message.contains(said), "{bytes:?}: {}", error.message);
        }
    }
}
