//! How much a request matters.

use axum::http::HeaderMap;
use isovec_http::PRIORITY;

use crate::failure::{Failure, Kind};

/// How much a request matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Priority {
    /// It leaves room for others, as work of the night does.
    Low,
    #[default]
    Normal,
}

/// The priority that a request's head asks for.
///
/// # Errors
/// A word that is no priority.
pub(crate) fn of(headers: &HeaderMap) -> Result<Priority, Failure> {
    let Some(value) = headers.get(PRIORITY) else {
        return Ok(Priority::default());
    };
    match value.as_bytes().trim_ascii() {
        b"low" => Ok(Priority::Low),
        b"normal" => Ok(Priority::Normal),
        _ => Err(Failure::new(
            Kind::Invalid,
            format!("the header {PRIORITY} is no priority; write low or normal"),
        )),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn two_words_are_priorities() {
        assert_eq!(of(&HeaderMap::new()).unwrap(), Priority::Normal);
        let read = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(PRIORITY, HeaderValue::from_bytes(value).unwrap());
            of(&headers)
        };
        assert_eq!(read(b" low").unwrap(), Priority::Low);
        assert_eq!(read(b"normal").unwrap(), Priority::Normal);
        for value in [&b""[..], b"high", b"LOW", b"0", b"\xff"] {
            assert!(read(value).is_err(), "{value:?}");
        }
    }
}
