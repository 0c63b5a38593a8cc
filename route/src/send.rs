//! A request's whole way: compressed, sent as often as is needed, and its answer made plain again.

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use bytes::Bytes;
use isovec_http::apart_if_large;
use isovec_http::coding::{self, Coding};
use isovec_http::{Failure, Kind, header};
use tower::retry::Retry;
use tower::util::ServiceExt as _;

use crate::attempt::{Answer, Attempt};
use crate::choose::Choice;
use crate::options::Compression;
use crate::retry::Again;
use crate::way::LARGEST_ANSWER;

/// How many times as large the body of an answer may become: a small one is a large one then.
const GROWS: usize = 8;

/// What sends requests.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    service: Retry<Again, Choice>,
    compression: Option<Compression>,
}

impl Sender {
    pub(crate) fn new(again: Again, choice: Choice, compression: Option<Compression>) -> Self {
        Self {
            service: Retry::new(again, choice),
            compression,
        }
    }

    /// The answer of some replica.
    ///
    /// # Errors
    /// That none has given one, and why.
    pub(crate) async fn send(&self, attempt: Attempt) -> Result<Answer, Failure> {
        let Some(compression) = self.compression.filter(|_| !attempt.is_grpc) else {
            return Ok(self.service.clone().oneshot(attempt).await?);
        };
        let attempt = compressed(attempt, compression).await?;
        let answer = self.service.clone().oneshot(attempt).await?;
        plain(answer).await
    }
}

/// The request with a compressed body, if it is large enough to gain by it and was not compressed by the client. It asks for an
/// answer of the same coding.
async fn compressed(mut attempt: Attempt, compression: Compression) -> Result<Attempt, Failure> {
    let Compression { coding, level } = compression;
    let headers = &mut attempt.headers;
    headers.insert(ACCEPT_ENCODING, coding.into());
    headers.insert(coding::LEVEL, header(level.to_string()));
    if attempt.body.len() < coding::LEAST || headers.contains_key(CONTENT_ENCODING) {
        return Ok(attempt);
    }
    let body = attempt.body.clone();
    let encoded = apart_if_large(body.len(), move || coding.encode(&body, level)).await?;
    let encoded = encoded.map_err(|error| {
        Failure::new(
            Kind::Broken,
            format!("the body cannot be compressed: {error}"),
        )
    })?;
    attempt.body = encoded.into();
    attempt.headers.insert(CONTENT_ENCODING, coding.into());
    Ok(attempt)
}

/// The answer as the client gets it.
async fn plain(mut answer: Answer) -> Result<Answer, Failure> {
    let Some(coding) = coding::of(&answer.headers)? else {
        return Ok(answer);
    };
    let body = std::mem::take(&mut answer.body);
    answer.body = decoded(coding, body).await?;
    answer.headers.remove(CONTENT_ENCODING);
    Ok(answer)
}

async fn decoded(coding: Coding, body: Bytes) -> Result<Bytes, Failure> {
    let size = body.len().saturating_mul(GROWS);
    let decoded = apart_if_large(size, move || coding.decode(&body, LARGEST_ANSWER)).await?;
    decoded.map_err(|failure| {
        let message = format!("a replica's answer cannot be read: {}", failure.message);
        Failure::new(Kind::Broken, message)
    })
}
