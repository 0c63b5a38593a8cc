//! Kept vectors on every engine that is here: the same bits, computed once, and never another's.

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::stats::EmbeddingCacheStats;
use isovec_test_support::{engines, tiny_model};

const TEXTS: [&str; 4] = ["a cat", "the end of a cat", "a cat", ""];

fn kept(embedder: &Embedder) -> EmbeddingCacheStats {
    embedder.stats().embedding_cache.unwrap()
}

fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn what_comes_again_has_the_same_bits_and_is_not_computed() {
    for engine in engines() {
        let config = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
        let embedder = Embedder::builder(tiny_model())
            .config(engine.configure(config))
            .load()
            .unwrap();
        let first = embedder.embed(TEXTS).unwrap();
        let before = embedder.stats().calls;
        for (at, text) in TEXTS.iter().enumerate().rev() {
            let again = embedder.embed_one(text).unwrap();
            assert_eq!(bits(&again), bits(first.get(at).unwrap()), "{engine:?}");
        }
        let after = embedder.stats().calls;
        assert_eq!(
            (after.batches, after.texts),
            (before.batches, before.texts),
            "{engine:?}"
        );
        let kept = kept(&embedder);
        assert_eq!((kept.misses, kept.hits), (3, 5), "{engine:?}");
    }
}

#[test]
fn what_is_forgotten_is_computed_again_and_what_is_on_disk_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let memory = EmbeddingConfig::default().with_embedding_cache_memory(1 << 20);
    let disk = EmbeddingConfig::default()
        .with_embedding_cache_disk(1 << 20)
        .with_embedding_cache_folder(folder.path());
    for (config, misses) in [(memory, 6), (disk, 3)] {
        let embedder = Embedder::builder(tiny_model())
            .config(config)
            .load()
            .unwrap();
        let first = embedder.embed(TEXTS).unwrap();
        embedder.forget_vectors();
        assert_eq!(embedder.embed(TEXTS).unwrap(), first);
        assert_eq!(kept(&embedder).misses, misses);
    }
    let without = Embedder::load(tiny_model()).unwrap();
    without.forget_vectors();
}

#[test]
fn a_query_is_not_taken_for_a_passage() {
    for engine in engines() {
        let plain = EmbeddingConfig::default().with_query_prompt("find: ");
        let keeping = plain.clone().with_embedding_cache_memory(1 << 20);
        let load = |config| {
            Embedder::builder(tiny_model())
                .config(engine.configure(config))
                .load()
                .unwrap()
        };
        let (plain, keeping) = (load(plain), load(keeping));
        for _ in 0..2 {
            let query = keeping.embed_query("a cat").unwrap();
            let passage = keeping.embed_passage("a cat").unwrap();
            assert_ne!(query.as_slice(), passage.as_slice(), "{engine:?}");
            assert_eq!(query.prompt(), Some("query"));
            let expected = plain.embed_query("a cat").unwrap();
            let difference = query.as_slice().iter().zip(expected.as_slice());
            assert!(
                difference
                    .map(|(a, b)| (a - b).abs())
                    .all(|off| off <= 1e-6)
            );
        }
        assert_eq!(kept(&keeping).misses, 2, "{engine:?}");
    }
}

#[test]
fn engines_and_knobs_that_round_otherwise_share_a_folder_and_no_vector() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for deterministic in [false, true] {
        for engine in engines() {
            let config = EmbeddingConfig::default()
                .with_embedding_cache_disk(1 << 20)
                .with_embedding_cache_folder(folder.path())
                .with_deterministic_compute(deterministic);
            let load = || {
                Embedder::builder(tiny_model())
                    .config(engine.configure(config.clone()))
                    .load()
                    .unwrap()
            };
            let first = load();
            let made = first.embed(TEXTS).unwrap();
            // A GPU always computes in one order, whatever is asked for.
            let knob = first
                .effective_config()
                .get("session.deterministic_compute");
            let way = (engine, knob.unwrap().used.clone());
            let misses = if seen.contains(&way) { 0 } else { 3 };
            assert_eq!(kept(&first).misses, misses, "{way:?}");
            seen.push(way);
            let second = load();
            assert_eq!(second.embed(TEXTS).unwrap(), made, "{engine:?}");
            assert_eq!(kept(&second).misses, 0, "{engine:?}");
        }
    }
}
