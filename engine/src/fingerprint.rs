//! What made a set of vectors, so that two sets are only compared when that makes sense.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The numeric class in which vectors were computed. Two classes of one identity may be
/// compared; the difference is reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Precision {
    /// 32-bit floats throughout.
    #[default]
    F32,
    /// 16-bit weights or arithmetic.
    F16,
    /// 8-bit weights or arithmetic.
    Int8,
}

/// As the configuration writes it.
impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
        })
    }
}

/// Identity and precision of whatever produced a set of vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// What must be equal for two vectors to live in the same space: the original weights'
    /// hash, how inputs are prepared, how outputs are pooled, cut and normalised.
    pub identity: BTreeMap<String, String>,
    /// The numeric class.
    pub precision: Precision,
}

/// One entry in which two identities differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The entry's name.
    pub key: String,
    /// The value on this side, if any.
    pub here: Option<String>,
    /// The value on the other side, if any.
    pub there: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        write!(
            f,
            "{}: {} here, {} there",
            self.key,
            show(&self.here),
            show(&self.there)
        )
    }
}

impl Fingerprint {
    /// A short name of the identity: the first 16 hex digits of the BLAKE3 hash over its
    /// entries in order, each key and value preceded by its length as a little-endian u64.
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in self.identity.iter().flat_map(|(key, value)| [key, value]) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_string()
    }

    /// The entries in which the two identities differ; empty when their vectors compare.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let keys: BTreeSet<&String> = self.identity.keys().chain(other.identity.keys()).collect();
        keys.into_iter()
            .filter(|key| self.identity.get(*key) != other.identity.get(*key))
            .map(|key| Difference {
                key: key.clone(),
                here: self.identity.get(key).cloned(),
                there: other.identity.get(key).cloned(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(entries: &[(&str, &str)]) -> Fingerprint {
        Fingerprint {
            identity: entries
                .iter()
                .map(|&(key, value)| (key.into(), value.into()))
                .collect(),
            precision: Precision::F32,
        }
    }

    #[test]
    fn differences_name_what_differs_and_nothing_else() {
        let a = fingerprint(&[("weights", "1"), ("pooling", "mean"), ("dimension", "384")]);
        let b = fingerprint(&[("weights", "1"), ("pooling", "cls"), ("prompts", "x")]);
        let keys: Vec<String> = a
            .differences(&b)
            .into_iter()
            .map(|difference| difference.key)
            .collect();
        assert_eq!(keys, ["dimension", "pooling", "prompts"]);
        assert!(a.differences(&a.clone()).is_empty());
    }

    #[test]
    fn precision_is_not_identity() {
        let a = fingerprint(&[("weights", "1")]);
        let b = Fingerprint {
            precision: Precision::Int8,
            ..a.clone()
        };
        assert!(a.differences(&b).is_empty());
        assert_eq!(a.id(), b.id());
    }

    #[test]
    fn the_id_sees_where_a_key_ends() {
        assert_ne!(
            fingerprint(&[("ab", "c")]).id(),
            fingerprint(&[("a", "bc")]).id()
        );
    }
}
