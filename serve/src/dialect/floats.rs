//! Vectors as text, and answers in JSON.

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isovec::Embeddings;
use isovec_http::apart_if_large;
use serde::{Serialize, Serializer};

use crate::failure::{Failure, Kind};

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
pub(super) async fn json(
    headers: HeaderMap,
    set: Embeddings,
    write: impl FnOnce(&Embeddings) -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Result<Response, Failure> {
    let size = set.as_slice().len();
    answer(headers, size, move || write(&set)).await
}

/// An answer in JSON: what `write` makes. `size` says how large it is: its numbers, or the bytes of its texts.
pub(super) async fn answer(
    mut headers: HeaderMap,
    size: usize,
    write: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static,
) -> Result<Response, Failure> {
    let body = written(size, write).await?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut response = Response::new(body.into());
    *response.headers_mut() = headers;
    Ok(response)
}

/// What `write` makes, on a thread where it delays no other request if it is large.
pub(super) async fn written<T: Send + 'static>(
    size: usize,
    write: impl FnOnce() -> serde_json::Result<T> + Send + 'static,
) -> Result<T, Failure> {
    let written = apart_if_large(size, write).await?;
    written.map_err(|error| Failure::new(Kind::Broken, error.to_string()))
}
