//! Reading a request's body: bounded in bytes and time.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, Request};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use crate::admission::Place;
use crate::failure::{Failure, Kind};
use crate::object::Object;

/// A body of more bytes is parsed on a thread where it delays no other request.
const HEAVY: usize = 64 << 10;

/// How long a refused body is read on, only to be thrown away: a client that is still writing would not read the answer.
const DISCARD: Duration = Duration::from_secs(2);

/// Refuses a body that is not said to be JSON.
pub(crate) fn check_is_json(headers: &HeaderMap) -> Result<(), Failure> {
    let given = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let essence = given.map(|value| value.split(';').next().unwrap_or_default().trim());
    if essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(Failure::new(
        Kind::MediaType,
        match given {
            Some(given) => format!("the content-type is {given}; send application/json"),
            None => "there is no content-type; send application/json".into(),
        },
    ))
}

/// Reads a body into memory, which `place` has room for.
///
/// # Errors
/// A body of more than `most` bytes, one that is not there at `until`, one that ends too early, and one that there is
/// no room for.
pub(crate) async fn read(
    request: Request<Body>,
    place: &mut Place,
    most: usize,
    until: Instant,
) -> Result<Bytes, Failure> {
    let (head, mut body) = request.into_parts();
    let told = head.headers.get(CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|told| told > most as u64) {
        // Whoever waits for a word before sending the body is not asked for it.
        if !head.headers.contains_key(EXPECT) {
            discard(&mut body).await;
        }
        return Err(too_large(most));
    }
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    loop {
        let frame = match timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) => {
                return Err(Failure::new(
                    Kind::Invalid,
                    "the body ended before it was complete",
                ));
            }
            Err(_) => {
                return Err(Failure::new(
                    Kind::SlowBody,
                    "the body did not arrive in time",
                ));
            }
        };
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len() + whole.len() + data.len() > most {
            discard(&mut body).await;
            return Err(too_large(most));
        }
        if let Err(refused) = place.grow(data.len()) {
            discard(&mut body).await;
            return Err(refused);
        }
        // Most bodies come as one frame, which is not copied.
        if first.is_empty() && whole.is_empty() {
            first = data;
        } else {
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&data);
        }
    }
    Ok(if whole.is_empty() {
        first
    } else {
        whole.freeze()
    })
}

/// The object that a JSON body holds.
pub(crate) async fn parse<T: DeserializeOwned + Send + 'static>(body: Bytes) -> Result<T, Failure> {
    let heavy = body.len() > HEAVY;
    let read = move || {
        serde_json::from_slice(&body)
            .map(|Object(value)| value)
            .map_err(|error| {
                let what = if error.is_data() {
                    "the request cannot be used"
                } else {
                    "the body is no JSON"
                };
                Failure::new(Kind::Invalid, format!("{what}: {error}"))
            })
    };
    if heavy { apart(read).await? } else { read() }
}

/// Does work that takes milliseconds where no other request waits for it.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Failure::new(Kind::Broken, "the server panicked; please report it"))
}

async fn discard(body: &mut Body) {
    let all = async { while let Some(Ok(_)) = body.frame().await {} };
    // In time or not, the answer is the same.
    let _ = timeout(DISCARD, all).await;
}

fn too_large(most: usize) -> Failure {
    Failure::new(
        Kind::TooLarge,
        format!("the body is larger than {most} bytes; send the texts in several requests"),
    )
}
