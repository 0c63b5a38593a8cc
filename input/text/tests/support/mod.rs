//! Shared parts of tests and benches.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

pub mod counting;
pub mod twins;
pub mod xlmr;

use std::collections::BTreeMap;

use bytes::Bytes;

/// A bundle that holds only this `tokenizer.json`.
pub fn bundle(tokenizer_json: impl Into<Bytes>) -> BTreeMap<String, Bytes> {
    BTreeMap::from([("tokenizer.json".to_owned(), tokenizer_json.into())])
}
