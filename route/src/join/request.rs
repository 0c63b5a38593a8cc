//! A request that can be joined: what it has to share with others, and its texts.

use std::fmt;

use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method};
use isovec_http::{PRIORITY, TEXT_TOKENS, access, coding, deadline};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::attempt::Attempt;

/// The route whose requests are joined.
pub(super) const ROUTE: &str = "/v1/embeddings";

/// Bytes of a request that is small.
const SMALL: usize = 16 << 10;

/// Texts of a request that is small.
const FEW: usize = 16;

/// What requests have to share: the key, the priority, and all fields but the texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sort {
    key: Option<HeaderValue>,
    priority: Option<HeaderValue>,
    /// As JSON has them, each with a comma behind it.
    pub(super) fields: String,
}

/// The head of what is joined: what all share. The time is the longest of all; each waits for its own.
pub(super) fn joint(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    headers.remove(access::REQUEST_ID);
    headers.remove(deadline::HEADER);
    headers.insert(TEXT_TOKENS, HeaderValue::from_static("each"));
    headers
}

/// The sort of a request and its texts, if it can be joined.
pub(super) fn read(attempt: &Attempt) -> Option<(Sort, Vec<Box<RawValue>>)> {
    let headers = &attempt.headers;
    let is_json = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().eq_ignore_ascii_case(b"application/json"));
    let is_special = headers.contains_key(CONTENT_ENCODING)
        || headers.contains_key(coding::LEVEL)
        || headers.contains_key(TEXT_TOKENS)
        || headers.get_all(AUTHORIZATION).iter().nth(1).is_some();
    let is_plain =
        attempt.method == Method::POST && attempt.path == ROUTE && is_json && !is_special;
    if !is_plain || attempt.is_grpc || attempt.body.len() > SMALL {
        return None;
    }
    let Fields(fields) = serde_json::from_slice(&attempt.body).ok()?;
    let (mut texts, mut others) = (None, Vec::new());
    for (name, value) in fields {
        match &*name {
            "input" => texts = Some(listed(value)?),
            // The server does not read it.
            "user" => {}
            _ => others.push(format!(
                "{}:{},",
                serde_json::to_string(&name).ok()?,
                value.get()
            )),
        }
    }
    others.sort_unstable();
    let sort = Sort {
        key: headers.get(AUTHORIZATION).cloned(),
        priority: headers.get(PRIORITY).cloned(),
        fields: others.concat(),
    };
    Some((sort, texts?))
}

/// The texts of `input`: one, or a list of a few; `None` for what is not plain, token ids among it.
fn listed(input: Box<RawValue>) -> Option<Vec<Box<RawValue>>> {
    let is_text = |value: &RawValue| value.get().starts_with('"') && value.get() != "\"\"";
    if is_text(&input) {
        return Some(vec![input]);
    }
    let texts: Vec<Box<RawValue>> = serde_json::from_str(input.get()).ok()?;
    let fits = (1..=FEW).contains(&texts.len()) && texts.iter().all(|text| is_text(text));
    fits.then_some(texts)
}

/// The fields of an object, each once.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, _>()? {
                    if fields.iter().any(|(before, _)| *before == name) {
                        return Err(serde::de::Error::custom("a field is there twice"));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
