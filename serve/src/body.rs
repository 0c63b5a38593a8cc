//! A request's body as JSON.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use isovec_http::apart_if_large;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Kind};
use crate::object::Object;

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

/// The object that a JSON body holds.
pub(crate) async fn parse<T: DeserializeOwned + Send + 'static>(body: Bytes) -> Result<T, Failure> {
    let size = body.len();
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
    apart_if_large(size, read).await?
}
