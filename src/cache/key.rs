//! The key of a vector: a hash of everything that decides it.

use isovec_engine::effective::EffectiveConfig;
use isovec_engine::engine::ProviderInfo;
use isovec_engine::fingerprint::Fingerprint;
use isovec_engine::onnx::{graph_identity, proto::ModelProto};

use crate::fallback::{self, Engines};

/// Another layout of what is hashed is another cache.
const LAYOUT: &str = "isovec embeddings 1";

/// Groups and knobs that change no vector, or no more than a text's neighbours in a batch do. Every other knob, those to come
/// included, makes a cache of its own.
const NOT_DECIDING: [&str; 22] = [
    "batching.",
    "embedding_cache.",
    "engine",
    "hub.",
    "io.",
    "memory.",
    "model.verify",
    "onnxruntime_library",
    "remember",
    "session.pool_size",
    "session.intra_op_threads",
    "session.cpu_arena",
    "session.profiling",
    "session.optimized_model_cache",
    "providers.provider_auto_selection",
    "providers.hardware_detection",
    "providers.strict_providers",
    "providers.cuda.memory_limit",
    "providers.tensorrt.max_workspace_size",
    "providers.tensorrt.engine_cache",
    "providers.webgpu.low_power",
    "providers.webgpu.software_adapter",
];

/// Whatever decides vectors beside the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope([u8; 32]);

impl Scope {
    /// Of a model as it was loaded: all that [`Self::new`] takes, the graph, which has what was read from `config.json`
    /// (checkpoints with the same weights may differ in that alone), and who computes small batches beside a GPU.
    pub(crate) fn of(
        fingerprint: &Fingerprint,
        graph: &ModelProto,
        engines: &Engines,
        effective: &EffectiveConfig,
        options: &str,
    ) -> Self {
        let engine = engines.current();
        let device = fallback::device(&**engine);
        Self::new(
            fingerprint,
            (engine.provider(), device.as_str()),
            effective,
            options,
        )
        .also(&graph_identity(graph))
        .also(
            &engines
                .beside()
                .map_or_else(String::new, ToString::to_string),
        )
    }

    /// Of the model's fingerprint (identity and precision), who computes on which device, the knobs in effect, and the
    /// options of providers as they were written, which no knob shows.
    pub(crate) fn new(
        fingerprint: &Fingerprint,
        (provider, device): (&ProviderInfo, &str),
        effective: &EffectiveConfig,
        options: &str,
    ) -> Self {
        let precision = fingerprint.precision.to_string();
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
            &provider.engine,
            &provider.provider,
            &provider.version,
            device,
            options,
        ] {
            add(part);
        }
        for knob in effective
            .knobs()
            .iter()
            .filter(|knob| decides(&knob.name[..]))
        {
            add(&knob.name[..]);
            add(&knob.used);
        }
        // No knob has this name.
        add("");
        for (key, value) in &fingerprint.identity {
            add(key);
            add(value);
        }
        // Whoever claims to be another model must not be answered with its vectors, nor leave it theirs.
        if !fingerprint.claimed.is_empty() {
            add("");
        }
        for (key, value) in &fingerprint.claimed {
            add(key);
            add(value);
        }
        Self(hash.finalize().into())
    }

    /// The same where one thing more decides vectors.
    fn also(&self, part: &str) -> Self {
        Self(blake3::keyed_hash(&self.0, part.as_bytes()).into())
    }

    /// The same of texts that an adapter reads, by its number.
    pub(crate) fn adapted(&self, adapter: u32) -> Self {
        self.also(&format!("adapter {adapter}"))
    }

    /// The same of pairs behind a prompt.
    pub(crate) fn prompted(&self, prompt: &str) -> Self {
        self.also(&format!("prompt {prompt}"))
    }

    /// The key of a text as the tokenizer is given it, prompt included.
    pub(crate) fn key(&self, text: &str) -> Key {
        Key(blake3::keyed_hash(&self.0, text.as_bytes()).into())
    }

    /// The key of two texts that are read together. The length of the first says where the second begins, and no text
    /// is hashed by this key.
    pub(crate) fn key_of_pair(&self, first: &str, second: &str) -> Key {
        let mut hash = blake3::Hasher::new_keyed(&self.also("pair").0);
        hash.update(&(first.len() as u64).to_le_bytes());
        hash.update(first.as_bytes());
        hash.update(second.as_bytes());
        Key(hash.finalize().into())
    }

    /// The key of a text that is there as token ids, behind a prompt. No text is hashed by this key.
    pub(crate) fn key_of_ids(&self, prompt: &str, ids: &[u32]) -> Key {
        let mut hash = blake3::Hasher::new_keyed(&self.also("ids").0);
        hash.update(&(prompt.len() as u64).to_le_bytes());
        hash.update(prompt.as_bytes());
        for id in ids {
            hash.update(&id.to_le_bytes());
        }
        Key(hash.finalize().into())
    }

    /// The key of a picture, whose bytes are of some kind. No text is hashed by this key.
    pub(crate) fn key_of_picture(&self, kind: &str, bytes: &[u8]) -> Key {
        let mut hash = blake3::Hasher::new_keyed(&self.also("picture").0);
        hash.update(&(kind.len() as u64).to_le_bytes());
        hash.update(kind.as_bytes());
        hash.update(bytes);
        Key(hash.finalize().into())
    }
}

fn decides(knob: &str) -> bool {
    !NOT_DECIDING.iter().any(|other| match other.ends_with('.') {
        true => knob.starts_with(other),
        false => knob == *other,
    })
}

/// An item's row under one scope.
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

    type Made = (
        BTreeMap<String, String>,
        bool,
        String,
        String,
        String,
        String,
    );

    /// Small alphabets, so that parts run into each other where nothing keeps them apart.
    fn made() -> impl Strategy<Value = Made> {
        let word = || "[ab]{0,2}";
        let identity = prop::collection::btree_map(word(), word(), 0..3);
        (identity, any::<bool>(), word(), word(), word(), word())
    }

    fn key((identity, small, provider, used, more, text): &Made) -> Key {
        let precision = if *small {
            Precision::Int8
        } else {
            Precision::F32
        };
        let fingerprint = Fingerprint {
            identity: identity.clone(),
            precision,
            ..Fingerprint::default()
        };
        let mut effective = EffectiveConfig::default();
        effective.note("model.onnx_file", None::<&str>, used, "");
        let provider = ProviderInfo::new("engine", provider, "1");
        Scope::new(&fingerprint, (&provider, ""), &effective, "")
            .also(more)
            .key(text)
    }

    #[test]
    fn how_a_model_is_read_decides_no_vector_and_which_one_does() {
        for (knob, expected) in [
            ("model.verify", false),
            ("memory.mmap", false),
            ("model.dtype", true),
            ("model.onnx_file", true),
        ] {
            assert_eq!(decides(knob), expected, "{knob}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn two_vectors_have_one_key_only_if_nothing_that_decides_them_differs(a in made(), b in made()) {
            prop_assert_eq!(key(&a) == key(&b), a == b);
        }
    }

    proptest! {
        #[test]
        fn a_pair_has_a_key_of_its_own(a in "[ab]{0,3}", b in "[ab]{0,3}", c in "[ab]{0,3}", d in "[ab]{0,3}") {
            let effective = EffectiveConfig::default();
            let provider = ProviderInfo::new("engine", "CPU", "1");
            let scope = Scope::new(&Fingerprint::default(), (&provider, ""), &effective, "");
            let same = scope.key_of_pair(&a, &b) == scope.key_of_pair(&c, &d);
            prop_assert_eq!(same, (&a, &b) == (&c, &d));
            prop_assert_ne!(scope.key_of_pair(&a, &b), scope.key(&c));
        }
    }

    proptest! {
        #[test]
        fn token_ids_have_a_key_of_their_own(a in "[ab]{0,2}", b in prop::collection::vec(0_u32..3, 0..3), c in "[ab]{0,2}", d in prop::collection::vec(0_u32..3, 0..3)) {
            let effective = EffectiveConfig::default();
            let provider = ProviderInfo::new("engine", "CPU", "1");
            let scope = Scope::new(&Fingerprint::default(), (&provider, ""), &effective, "");
            let same = scope.key_of_ids(&a, &b) == scope.key_of_ids(&c, &d);
            prop_assert_eq!(same, (&a, &b) == (&c, &d));
            prop_assert_ne!(scope.key_of_ids(&a, &b), scope.key(&c));
            prop_assert_ne!(scope.key_of_ids(&a, &b), scope.key_of_pair(&a, &c));
        }
    }

    #[test]
    fn every_knob_makes_a_scope_of_its_own_but_those_that_change_no_vector() {
        let fingerprint = Fingerprint::default();
        let provider = ProviderInfo::new("engine", "CPU", "1");
        let scope = |name: &'static str, used: &str| {
            let mut effective = EffectiveConfig::default();
            effective.note(name, None::<&str>, used, "");
            Scope::new(&fingerprint, (&provider, ""), &effective, "")
        };
        for name in [
            "model.dtype",
            "session.deterministic_compute",
            "session.graph_optimization_level",
            "providers.execution_providers",
            "providers.cuda.tf32",
            "one.to_come",
        ] {
            assert_ne!(scope(name, "a"), scope(name, "b"), "{name}");
        }
        for name in ["session.pool_size", "batching.max_queue", "engine"] {
            assert_eq!(scope(name, "a"), scope(name, "b"), "{name}");
        }
        let effective = EffectiveConfig::default();
        let plain = Scope::new(&fingerprint, (&provider, ""), &effective, "");
        let device = Scope::new(&fingerprint, (&provider, "a GPU"), &effective, "");
        let options = Scope::new(&fingerprint, (&provider, ""), &effective, "{}");
        assert!(plain != device && plain != options && device != options);
    }
}
