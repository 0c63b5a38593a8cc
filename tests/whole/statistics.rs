//! What `stats()` says after work on texts of mixed lengths: that buffers are used again, that
//! nothing is copied, and that the counts add up.

use std::collections::BTreeSet;

use isovec::EmbeddingConfig;
use isovec::blocking::Embedder;
use isovec::profile::{ProfileOptions, Stage};
use isovec::stats::Stats;
use isovec_test_support::{Which, engines, mixed_texts, tiny_model};

const TEXTS: usize = 400;
const CALLS: usize = 6;
const CALLS_UNTIL_SHARED: usize = 200;

fn worked(which: Which, config: EmbeddingConfig) -> (Embedder, Stats) {
    let embedder = Embedder::builder(tiny_model())
        .config(which.configure(config))
        .load()
        .unwrap();
    let texts = mixed_texts(TEXTS);
    // Calls of different sizes, so that the batches are never those of the call before.
    for call in 0..CALLS {
        embedder.embed(&texts[call..TEXTS - 7 * call]).unwrap();
    }
    let stats = embedder.stats();
    (embedder, stats)
}

fn texts_embedded() -> u64 {
    (0..CALLS).map(|call| (TEXTS - 8 * call) as u64).sum()
}

/// The targets of the steady state, the first call, which makes the buffers, counted too.
#[test]
fn buffers_are_used_again_and_nothing_is_copied() {
    for which in engines() {
        for pool_size in [1, 2] {
            let config = EmbeddingConfig::default()
                .with_intra_op_threads(1)
                .with_pool_size(pool_size)
                // What is tested is the pool, whatever else the machine is doing.
                .with_memory_pressure_detection(false);
            let (_, stats) = worked(which, config);
            let (pool, io) = (&stats.engine.memory_pool, &stats.engine.io_binding);
            let figures = format!("{}, {pool_size} at once: {pool:?} {io:?}", which.name());
            println!("{figures}");
            // More batches are under way at once where a device works on one while others are put
            // together, and each of them has its buffers.
            let least = if which == Which::WebGpu { 0.75 } else { 0.95 };
            assert!(pool.hit_ratio() >= least, "{figures}");
            assert!(io.buffer_reuse_ratio() >= least, "{figures}");
            match which {
                Which::OnnxRuntime => {
                    assert!(io.bound && io.fallback.is_none(), "{figures}");
                    assert_eq!(io.zero_copy_ratio(), 1.0, "{figures}");
                    assert_eq!(io.copied_bytes, 0, "{figures}");
                }
                // Padding is left out while inputs are copied, and that is told.
                Which::Portable | Which::WebGpu => {
                    assert!(!io.bound && io.fallback.is_some(), "{figures}");
                    assert_eq!(io.zero_copy_ratio(), 0.0, "{figures}");
                    assert!(io.copied_bytes > 0, "{figures}");
                }
            }
        }
    }
}

/// The same with everything off is told as it is.
#[test]
fn without_pool_and_binding_the_ratios_say_so() {
    if !engines().contains(&Which::OnnxRuntime) {
        return;
    }
    let config = EmbeddingConfig::default()
        .with_memory_pool(false)
        .with_io_binding(false)
        .with_zero_copy(false);
    let (_, stats) = worked(Which::OnnxRuntime, config);
    let io = &stats.engine.io_binding;
    assert!(!io.bound && io.fallback.is_some());
    assert_eq!((io.inputs_in_place, io.outputs_in_place), (0, 0));
    assert_eq!(io.zero_copy_ratio(), 0.0);
    assert_eq!(stats.engine.memory_pool.hit_ratio(), 0.0);
    assert_eq!(io.buffer_reuse_ratio(), 0.0);
    assert!(io.copied_bytes > 0);
}

#[test]
fn counts_add_up_and_survive_json() {
    for which in engines() {
        let (embedder, before) = worked(which, EmbeddingConfig::default().with_pool_size(2));
        embedder.embed([" "; 0]).unwrap();
        let long = "word ".repeat(4 * embedder.max_length());
        embedder.embed_one(&long).unwrap();
        let refused = isovec::EmbedOptions::default().with_cancel({
            let cancel = isovec::Cancel::new();
            cancel.cancel();
            cancel
        });
        assert!(embedder.embed_with(["a", "b"], refused).is_err());
        let stats = embedder.stats();

        let calls = &stats.calls;
        assert_eq!(calls.embedded, CALLS as u64 + 2, "{calls:?}");
        assert_eq!((calls.failed, calls.cancelled), (0, 1), "{calls:?}");
        assert_eq!(calls.texts, texts_embedded() + 1, "{calls:?}");
        assert_eq!(calls.truncated, before.calls.truncated + 1, "{calls:?}");

        let sessions = &stats.engine.sessions;
        let provider = &stats.engine.provider;
        assert_eq!(provider.runs, calls.batches, "{provider:?}");
        assert_eq!(provider.success_rate(), 1.0);
        assert_eq!(sessions.run.count, calls.batches, "{sessions:?}");
        assert_eq!(sessions.wait.count, calls.batches, "{sessions:?}");
        assert_eq!((sessions.in_use, sessions.waiting), (0, 0), "{sessions:?}");
        if which == Which::OnnxRuntime {
            assert_eq!((sessions.count, sessions.per_session.len()), (2, 2));
            let runs = sessions.per_session.iter().map(|share| share.runs);
            assert_eq!(runs.sum::<u64>(), calls.batches, "{sessions:?}");
        }
        assert_eq!(stats.stages.batch.count, calls.batches);
        assert_eq!(stats.stages.embed.count, calls.embedded);
        let inputs = embedder.description().inputs.len() as u64;
        assert_eq!(stats.engine.io_binding.inputs, calls.batches * inputs);
        assert_eq!(
            stats.tokens.real - before.tokens.real,
            embedder.max_length() as u64
        );
        assert!(stats.tokens.padding_ratio() < 0.1, "{:?}", stats.tokens);

        // By value, not by text: serde_json reads a decimal fraction to within one last bit.
        let json = serde_json::to_value(&stats).unwrap();
        assert_eq!(serde_json::from_value::<Stats>(json).unwrap(), stats);
    }
}

/// A pool of several runs: a call's batches are under way at the same time, on threads of their own,
/// and its vectors are those of a single one.
#[test]
fn runs_of_a_pool_are_under_way_at_the_same_time() {
    let texts = mixed_texts(TEXTS);
    for which in engines() {
        if which == Which::WebGpu {
            continue;
        }
        let load = |runs| {
            let config = EmbeddingConfig::default()
                .with_intra_op_threads(1)
                .with_pool_size(runs);
            Embedder::builder(tiny_model())
                .config(which.configure(config))
                .load()
                .unwrap()
        };
        let one = load(1).embed(&texts).unwrap();
        let pool = load(3);
        assert_eq!(pool.capabilities().concurrent_runs, 3, "{}", which.name());
        assert_eq!(pool.stats().engine.sessions.count, 3, "{}", which.name());
        // On a busy machine one thread may have run every batch of a call before a second one is
        // given a core, so calls are made until two threads have shared one.
        let shared = (0..CALLS_UNTIL_SHARED).any(|_| {
            let session = pool.profile(ProfileOptions::default()).unwrap();
            let several = pool.embed(&texts).unwrap();
            let profile = session.finish();
            assert_eq!(one.len(), several.len());
            for (one, other) in one.iter().zip(several.iter()) {
                for (a, b) in one.iter().zip(other) {
                    assert!((a - b).abs() <= 1e-6, "{}: {a} {b}", which.name());
                }
            }
            let runs = profile.events().iter();
            let runs = runs.filter(|event| event.stage == Stage::Run);
            runs.map(|run| run.thread).collect::<BTreeSet<u32>>().len() > 1
        });
        assert!(shared, "{}: one thread ran each call", which.name());
    }
}
