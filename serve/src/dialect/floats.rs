//! Vectors as text.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isovec::Embeddings;
use serde::{Serialize, Serializer};

use crate::body::apart;
use crate::failure::{Failure, Kind};

/// Numbers of an answer that is written on a thread where it delays no other request.
const HEAVY: usize = 64 << 10;

/// How a vector is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// A list of numbers, each with as many digits as tell it from its neighbours: reading it gives the same bits.
    #[default]
    Float,
    /// The bytes of its components, little-endian 32-bit floats, in base64.
    Base64,
}

/// A vector, to be written.
pub(super) struct Vector<'a>(pub(super) &'a [f32], pub(super) Format);

impl Serialize for Vector<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Format::Float => self.0.serialize(serializer),
            Format::Base64 => {
                let bytes: Vec<u8> = self
                    .0
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                serializer.serialize_str(&STANDARD.encode(bytes))
            }
        }
    }
}

/// All vectors of a set, as a list.
pub(super) struct Rows<'a>(pub(super) &'a Embeddings);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

/// An answer in JSON: what `write` makes of the vectors.
pub(super) async fn json<T>(
    headers: HeaderMap,
    set: Embeddings,
    write: impl FnOnce(&Embeddings) -> serde_json::Result<T> + Send + 'static,
) -> Result<Response, Failure>
where
    T: Into<axum::body::Body> + Send + 'static,
{
    let heavy = set.as_slice().len() > HEAVY;
    let write = move || write(&set);
    let written = if heavy { apart(write).await? } else { write() };
    let body = written.map_err(|error| Failure::new(Kind::Broken, error.to_string()))?;
    Ok(with_headers(headers, body.into()))
}

/// An answer in JSON that is written at once: scores and labels are few.
pub(super) fn answer(headers: HeaderMap, value: &impl Serialize) -> Result<Response, Failure> {
    let written = serde_json::to_vec(value);
    let body = written.map_err(|error| Failure::new(Kind::Broken, error.to_string()))?;
    Ok(with_headers(headers, body.into()))
}

fn with_headers(headers: HeaderMap, body: axum::body::Body) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A value in JSON, which is not large.
pub(crate) fn small(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (json, body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
