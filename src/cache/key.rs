//! Which vector a text has: everything that decides it, in one hash.

use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::ProviderInfo;
use isovec_engine::fingerprint::Fingerprint;

/// Another layout of what is hashed is another cache.
const LAYOUT: &str = "isovec embeddings 1";

/// Knobs that change a vector's bits and are not part of the fingerprint, which says what may be compared.
const DECIDING: [&str; 7] = [
    "model.onnx_file",
    "model.dtype",
    "session.deterministic_compute",
    "session.graph_optimization_level",
    "providers.cuda.tf32",
    "providers.tensorrt.fp16",
    "providers.webgpu.f16",
];

/// Whatever decides vectors beside the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope([u8; 32]);

impl Scope {
    /// Of a model as it was loaded: its fingerprint's identity and precision, who computes, and the knobs that change bits.
    pub(crate) fn new(
        fingerprint: &Fingerprint,
        provider: &ProviderInfo,
        effective: &EffectiveConfig,
    ) -> Self {
        let precision = fingerprint.precision.to_string();
        let provider = provider.to_string();
        let mut hash = blake3::Hasher::new();
        let mut add = |part: &str| {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        };
        for part in [
            LAYOUT,
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            &precision,
            &provider,
        ] {
            add(part);
        }
        for knob in DECIDING {
            add(effective.get(knob).map_or("", |knob| &knob.used));
        }
        for (key, value) in &fingerprint.identity {
            add(key);
            add(value);
        }
        Self(hash.finalize().into())
    }

    /// The key of a text as the tokenizer is given it, prompt included.
    pub(crate) fn key(&self, text: &str) -> Key {
        Key(blake3::keyed_hash(&self.0, text.as_bytes()).into())
    }
}

/// A text's vector under one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl Key {
    /// As files are named.
    pub(crate) fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isovec_engine::fingerprint::Precision;
    use proptest::prelude::*;

    use super::*;

    type Made = (BTreeMap<String, String>, bool, String, String, String);

    /// Small alphabets, so that parts run into each other where nothing keeps them apart.
    fn made() -> impl Strategy<Value = Made> {
        let word = || "[ab]{0,2}";
        let identity = prop::collection::btree_map(word(), word(), 0..3);
        (identity, any::<bool>(), word(), word(), word())
    }

    fn key((identity, small, provider, used, text): &Made) -> Key {
        let precision = if *small {
            Precision::Int8
        } else {
            Precision::F32
        };
        let fingerprint = Fingerprint {
            identity: identity.clone(),
            precision,
        };
        let mut effective = EffectiveConfig::default();
        effective.note("model.onnx_file", None::<&str>, used, "");
        let provider = ProviderInfo::new("engine", provider, "1");
        Scope::new(&fingerprint, &provider, &effective).key(text)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn two_vectors_have_one_key_only_if_nothing_that_decides_them_differs(a in made(), b in made()) {
            prop_assert_eq!(key(&a) == key(&b), a == b);
        }
    }

    #[test]
    fn each_knob_that_changes_bits_changes_the_key() {
        let fingerprint = Fingerprint::default();
        let provider = ProviderInfo::new("engine", "CPU", "1");
        let scope = |name: Option<&'static str>| {
            let mut effective = EffectiveConfig::default();
            if let Some(name) = name {
                effective.note(name, None::<&str>, "x", "");
            }
            Scope::new(&fingerprint, &provider, &effective)
        };
        for name in DECIDING {
            assert_ne!(scope(Some(name)), scope(None), "{name}");
        }
        assert_eq!(scope(Some("session.pool_size")), scope(None));
    }
}
