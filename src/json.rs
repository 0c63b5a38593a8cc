//! JSON as text, by the one writer that a page downloads. A `serde_json::Value` between takes a second one.

use serde::Serialize;

/// The text of what always has one: its keys are texts, and nothing in it fails to be written.
pub(crate) fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
