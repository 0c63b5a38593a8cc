//! The answer to what was joined, and the parts of it.

use std::ops::Range;

use axum::http::StatusCode;
use bytes::Bytes;
use isovec_http::{TEXT_TOKENS, TRUNCATED, TRUNCATED_TEXTS, header, openai, ranges};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::attempt::Answer;

/// The answer to what was joined.
pub(super) struct Whole<'a> {
    body: Body<'a>,
    /// Tokens of each text.
    tokens: Vec<u64>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    data: Vec<Row<'a>>,
    #[serde(borrow)]
    model: &'a RawValue,
    #[serde(borrow)]
    fingerprint: &'a RawValue,
    truncated: Vec<usize>,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    embedding: &'a RawValue,
}

impl<'a> Whole<'a> {
    /// Reads an answer with so many vectors; `None` if it is no such answer.
    pub(super) fn of(answer: &'a Answer, texts: usize) -> Option<Self> {
        if answer.status != StatusCode::OK {
            return None;
        }
        let listed = answer.headers.get(TEXT_TOKENS)?.to_str().ok()?;
        let tokens: Vec<u64> = listed
            .split(',')
            .map(|count| count.parse().ok())
            .collect::<Option<_>>()?;
        let body: Body<'a> = serde_json::from_slice(&answer.body).ok()?;
        (body.data.len() == texts && tokens.len() == texts).then_some(Self { body, tokens })
    }

    /// The answer to some of the texts, as the server would have written it.
    pub(super) fn part(&self, answer: &Answer, texts: Range<usize>) -> Option<Answer> {
        let truncated: Vec<usize> = self
            .body
            .truncated
            .iter()
            .filter(|place| texts.contains(place))
            .map(|place| place - texts.start)
            .collect();
        let rows = self.body.data[texts.clone()].iter();
        let body = openai::Answer::new(
            rows.map(|row| row.embedding),
            [self.body.model, self.body.fingerprint],
            self.tokens[texts].iter().sum(),
            &truncated,
        );
        let body: Bytes = serde_json::to_vec(&body).ok()?.into();
        let mut headers = answer.headers.clone();
        for name in [TEXT_TOKENS, TRUNCATED, TRUNCATED_TEXTS] {
            headers.remove(name);
        }
        if !truncated.is_empty() {
            headers.insert(TRUNCATED, header(truncated.len().to_string()));
            headers.insert(TRUNCATED_TEXTS, header(ranges(truncated)));
        }
        Some(Answer {
            headers,
            body,
            ..answer.clone()
        })
    }
}
