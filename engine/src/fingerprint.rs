//! Identifies the model that made a set of vectors, so that only comparable sets are compared.

use std::collections::BTreeMap;
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
    /// Weights in bfloat16, the upper half of a 32-bit float.
    Bf16,
    /// 8-bit weights or arithmetic.
    Int8,
    /// 8-bit weights, and activations rounded to 8 bits by groups of 128.
    #[serde(rename = "int8-fast")]
    Int8Fast,
}

/// As the configuration writes it.
impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Int8Fast => "int8-fast",
        })
    }
}

/// Identity and precision of whatever produced a set of vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The entries that must be equal for two vectors to be in the same space: the original weights' hash, how inputs
    /// are prepared, how outputs are pooled, cut and normalised.
    pub identity: BTreeMap<String, String>,
    /// The numeric class.
    pub precision: Precision,
    /// Entries of the identity that a file claims and that cannot be computed from its content, each with a value
    /// that can: for `weights`, the hash of the tensors in the file. An exported model claims its original's weights.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claimed: BTreeMap<String, String>,
}

/// The entry with the name of a space that models of different things share, such as texts and pictures.
pub const SPACE: &str = "space";

/// The entry of the identity for the use of the weights: heads, epsilon, activation, positions. Fingerprints that
/// were written before there was such an entry have none, which means [`UNKNOWN`].
pub const ARCHITECTURE: &str = "architecture";

/// The entry of the identity that says how many components a vector has.
pub const DIMENSION: &str = "dimension";

/// The entry of the identity that says whether vectors have unit length.
pub const NORMALIZE: &str = "normalize";

/// The value of [`ARCHITECTURE`] where no file says it.
pub const UNKNOWN: &str = "unknown";

/// A fact that a comparison cannot verify.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// This entry of one of the two, or of both, is unknown.
    Unknown {
        /// The entry's name.
        key: String,
    },
    /// This entry is equal because a file claims so.
    Claimed {
        /// The entry's name.
        key: String,
    },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { key } => write!(f, "{key}: unknown on one side or both"),
            Self::Claimed { key } => write!(f, "{key}: equal by what a model's file claims"),
        }
    }
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
    /// The facts that cannot be verified when the two are compared.
    pub fn doubts(&self, other: &Self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if !(self.knows(ARCHITECTURE) && other.knows(ARCHITECTURE)) {
            let key = ARCHITECTURE.to_owned();
            doubts.push(Doubt::Unknown { key });
        }
        for key in keys(&self.claimed, &other.claimed) {
            // Two that hold the same, and claim the same of it, are the same.
            if self.claimed.get(key) != other.claimed.get(key) {
                doubts.push(Doubt::Claimed { key: key.clone() });
            }
        }
        doubts
    }

    fn knows(&self, key: &str) -> bool {
        self.identity.get(key).is_some_and(|value| value != UNKNOWN)
    }

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

    /// The entries in which the two identities differ; empty if their vectors can be compared. An entry that one of
    /// them does not know is not a difference; [`doubts`](Self::doubts) has it. Two that share a [`SPACE`] may read
    /// different things: an entry that only one of them has is about how, and is no difference either.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let space = self.identity.get(SPACE);
        let shared = space.is_some() && space == other.identity.get(SPACE);
        let both = |key: &str| self.identity.contains_key(key) && other.identity.contains_key(key);
        keys(&self.identity, &other.identity)
            .filter(|key| !shared || both(key))
            .filter(|key| self.identity.get(*key) != other.identity.get(*key))
            .filter(|key| *key != ARCHITECTURE || (self.knows(key) && other.knows(key)))
            .map(|key| Difference {
                key: key.clone(),
                here: self.identity.get(key).cloned(),
                there: other.identity.get(key).cloned(),
            })
            .collect()
    }
}

/// The keys of either, each once, in order.
fn keys<'a>(
    here: &'a BTreeMap<String, String>,
    there: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a String> {
    let mut keys: Vec<&String> = here.keys().chain(there.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
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
            ..Fingerprint::default()
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
    fn what_shares_a_space_may_read_different_things() {
        let texts = fingerprint(&[("weights", "1"), (SPACE, "s"), ("words", "t")]);
        let pictures = fingerprint(&[("weights", "1"), (SPACE, "s"), ("pixels", "p")]);
        assert!(texts.differences(&pictures).is_empty());
        let keys = |one: &Fingerprint, other: &[(&str, &str)]| {
            let differences = one.differences(&fingerprint(other));
            differences.into_iter().map(|it| it.key).collect::<Vec<_>>()
        };
        let others = [("weights", "2"), (SPACE, "s"), ("pixels", "p")];
        assert_eq!(keys(&texts, &others), ["weights"]);
        let elsewhere = [("weights", "1"), (SPACE, "other"), ("pixels", "p")];
        assert_eq!(keys(&texts, &elsewhere), ["pixels", SPACE, "words"]);
        let other_words = [("weights", "1"), (SPACE, "s"), ("words", "u")];
        assert_eq!(keys(&texts, &other_words), ["words"]);
        let no_space = [("weights", "1"), ("pixels", "p")];
        assert_eq!(keys(&texts, &no_space), ["pixels", SPACE, "words"]);
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
    fn an_unknown_architecture_is_no_difference_and_is_said() {
        let known = fingerprint(&[("weights", "1"), (ARCHITECTURE, "a")]);
        let other = fingerprint(&[("weights", "1"), (ARCHITECTURE, "b")]);
        let unknown = fingerprint(&[("weights", "1"), (ARCHITECTURE, UNKNOWN)]);
        let older = fingerprint(&[("weights", "1")]);
        assert_eq!(known.differences(&other).len(), 1);
        assert!(known.doubts(&known.clone()).is_empty());
        for without in [&unknown, &older] {
            for with in [&known, &unknown, &older] {
                for (a, b) in [(without, with), (with, without)] {
                    assert!(a.differences(b).is_empty());
                    let said: Vec<String> = a.doubts(b).iter().map(Doubt::to_string).collect();
                    assert_eq!(said, ["architecture: unknown on one side or both"]);
                }
            }
        }
    }

    #[test]
    fn a_claim_is_said_unless_both_hold_the_same() {
        let computed = fingerprint(&[("weights", "1"), (ARCHITECTURE, "a")]);
        let claims = |own: &str| Fingerprint {
            claimed: BTreeMap::from([("weights".into(), own.into())]),
            ..computed.clone()
        };
        assert!(computed.differences(&claims("2")).is_empty());
        for (one, other) in [
            (&computed, &claims("2")),
            (&claims("2"), &computed),
            (&claims("2"), &claims("3")),
        ] {
            let key = "weights".to_owned();
            assert_eq!(one.doubts(other), [Doubt::Claimed { key }]);
        }
        assert!(claims("2").doubts(&claims("2")).is_empty());
        assert_eq!(computed.id(), claims("2").id());
    }

    #[test]
    fn a_fingerprint_without_claims_is_written_as_it_always_was() {
        let plain = fingerprint(&[("weights", "1")]);
        let json = serde_json::to_string(&plain).unwrap();
        assert_eq!(json, r#"{"identity":{"weights":"1"},"precision":"f32"}"#);
        assert_eq!(serde_json::from_str::<Fingerprint>(&json).unwrap(), plain);
    }

    #[test]
    fn the_id_sees_where_a_key_ends() {
        assert_ne!(
            fingerprint(&[("ab", "c")]).id(),
            fingerprint(&[("a", "bc")]).id()
        );
    }
}
