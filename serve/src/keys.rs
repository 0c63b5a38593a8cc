//! API keys.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::error::{Error, Result};

/// Keys of which a request has to carry one, as `authorization: Bearer KEY`. Only their hashes are kept, and shown nowhere.
#[derive(Clone)]
pub struct ApiKeys(Arc<[blake3::Hash]>);

/// One of the keys: its place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(usize);

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKeys({})", self.0.len())
    }
}

impl ApiKeys {
    /// Reads keys from a file: one a line; empty lines and lines that begin with `#` are none.
    ///
    /// # Errors
    /// [`Error::Keys`] when the file cannot be read, holds no key, or holds one that no header can carry.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let fail = |detail: String| Error::Keys {
            path: path.to_owned(),
            detail,
        };
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let mut keys = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let key = line.trim();
            if key.is_empty() || key.starts_with('#') {
                continue;
            }
            if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                // Without the key itself, which belongs in no log.
                return Err(fail(format!(
                    "the key in line {} has characters other than printable ASCII, which no header can carry",
                    at + 1
                )));
            }
            keys.push(blake3::hash(key.as_bytes()));
        }
        if keys.is_empty() {
            return Err(fail(
                "there is no key in it; write one a line, or leave the file out".into(),
            ));
        }
        Ok(Self(keys.into()))
    }

    /// Whether there are two at least.
    pub(crate) fn several(&self) -> bool {
        self.0.len() > 1
    }

    /// The key in a request's head, if it is one of these. The time that it takes says nothing of a key: hashes are compared
    /// (`blake3::Hash` does so in constant time), and always all of them.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Option<Key> {
        let given = bearer(headers.get(AUTHORIZATION)?.as_bytes())?;
        let given = blake3::hash(given);
        let keys = self.0.iter().enumerate();
        keys.fold(None, |found, (at, key)| match *key == given {
            true => found.or(Some(Key(at))),
            false => found,
        })
    }
}

/// What follows the scheme `Bearer`, whose case does not matter (RFC 9110, 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = value.split_at_checked("bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| key.trim_ascii())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn keys(text: &str) -> Result<ApiKeys> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, text).unwrap();
        ApiKeys::read(path)
    }

    fn admitted(keys: &ApiKeys, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        keys.admit(&headers).is_some()
    }

    #[test]
    fn one_of_the_keys_is_enough() {
        let keys = keys("# of the team\nfirst-key\r\n\n second-key \n").unwrap();
        for value in [
            "Bearer first-key",
            "bearer second-key",
            "BEARER  first-key ",
        ] {
            assert!(admitted(&keys, value), "{value}");
        }
        for value in [
            "Bearer first-ke",
            "Bearer first-key2",
            "Bearer ",
            "Basic first-key",
            "first-key",
            "Bearer # of the team",
        ] {
            assert!(!admitted(&keys, value), "{value}");
        }
        assert!(keys.admit(&HeaderMap::new()).is_none());
        let both = "Bearer first-key Bearer second-key";
        assert!(!admitted(&keys, both));
        assert_eq!(format!("{keys:?}"), "ApiKeys(2)");
    }

    #[test]
    fn a_file_without_usable_keys_is_refused_and_no_key_is_told() {
        assert!(
            keys("# none\n\n")
                .unwrap_err()
                .to_string()
                .contains("no key")
        );
        let error = keys("good\nb\u{e4}d-secret\n").unwrap_err().to_string();
        assert!(
            error.contains("line 2") && !error.contains("secret"),
            "{error}"
        );
        assert!(ApiKeys::read("not/there").is_err());
    }
}
