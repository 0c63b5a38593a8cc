//! 16-bit arithmetic on a GPU, as users of the SDK see it: how near it stays to the reference, what vectors say of
//! themselves, and that it is never done, nor left out, in silence.

use std::path::Path;

use isovec::config::ExecutionProvider;
use isovec::fingerprint::Precision;
use isovec::{Embedder, EmbeddingConfig, Error, ModelSource};
use isovec_parity::{BOUNDS_F16, Reference};
use isovec_test_support::{Which, engines, minilm, tiny_model, written_with_tiny_files};

const KNOB: &str = "providers.webgpu.f16";

/// The test's adapter, with 16-bit arithmetic.
fn config() -> EmbeddingConfig {
    let mut config = Which::WebGpu.configure(EmbeddingConfig::default());
    config.runtime.providers.webgpu.f16 = Some(true);
    config
}

/// A model in f16, which it says; `None`, aloud, where there is no adapter that has it.
fn load(source: ModelSource) -> Option<Embedder> {
    if !engines().contains(&Which::WebGpu) {
        return None;
    }
    let config = config()
        .with_max_batch_size(32)
        .with_max_batch_tokens(32 * 512);
    let embedder = pollster::block_on(Embedder::builder(source).config(config).load()).unwrap();
    let knob = embedder.effective_config().get(KNOB).unwrap().clone();
    if !knob.honoured {
        assert!(knob.why.contains("shader-f16"), "{knob:?}");
        eprintln!("not run: {}", knob.why);
        return None;
    }
    assert!(embedder.stats().engine.gpu.unwrap().f16);
    Some(embedder)
}

fn keeps_the_bounds(source: ModelSource, reference: &Reference) {
    let Some(embedder) = load(source) else {
        return;
    };
    let report = pollster::block_on(isovec_parity::run(&embedder, reference)).unwrap();
    println!("f16: {report}");
    let broken = report.broken_within(&BOUNDS_F16);
    assert!(broken.is_empty(), "{}", broken.join("; "));
    // A bound that arithmetic in f32 keeps would see nothing.
    assert!(report.reference.l2 > 1e-5, "{report}: is this f16 at all?");
}

#[test]
fn the_tiny_model_keeps_the_bounds() {
    keeps_the_bounds(tiny_model(), &Reference::tiny());
}

#[test]
fn minilm_keeps_the_bounds() {
    if let Some(model) = minilm() {
        // A processor that plays a GPU is slow: a second for a few texts.
        keeps_the_bounds(model, &Reference::minilm().some(12));
    }
}

/// The same model in another precision: its vectors are compared with others, and the difference is said.
#[test]
fn vectors_say_that_they_were_computed_in_f16() {
    let Some(small) = load(tiny_model()) else {
        return;
    };
    let plain = Which::WebGpu.configure(EmbeddingConfig::default());
    let large = pollster::block_on(Embedder::builder(tiny_model()).config(plain).load()).unwrap();
    assert_eq!(large.fingerprint().precision, Precision::F32);
    assert_eq!(small.fingerprint().precision, Precision::F16);
    assert_eq!(small.fingerprint().identity, large.fingerprint().identity);
    let index = pollster::block_on(large.embed(["a cat", "the end of the world"])).unwrap();
    let query = pollster::block_on(small.embed(["a cat"])).unwrap();
    let difference = index
        .check_compatible(query.fingerprint())
        .unwrap()
        .unwrap();
    assert_eq!(
        (difference.here, difference.there),
        (Precision::F32, Precision::F16)
    );
    assert_eq!(index.search(&query, 1).unwrap()[0][0].index, 0);
}

/// Where something else computes, it computes in f32, and says that it does.
#[test]
fn the_processor_has_no_use_for_it() {
    let mut config = Which::Portable.configure(EmbeddingConfig::default());
    // The adapter of test machines, if any, is a processor, which is used only where that is asked for.
    config.runtime.providers.execution_providers =
        vec![ExecutionProvider::WebGpu, ExecutionProvider::Cpu];
    config.runtime.providers.webgpu.f16 = Some(true);
    let embedder =
        pollster::block_on(Embedder::builder(tiny_model()).config(config).load()).unwrap();
    if embedder.provider().engine == "gpu" {
        return eprintln!("not run: this machine has a GPU");
    }
    let effective = embedder.effective_config();
    let knob = effective.get(KNOB).unwrap();
    assert!(!knob.honoured && knob.used == "none", "{knob:?}");
    assert_eq!(knob.why, "cpu computes");
    assert_eq!(embedder.fingerprint().precision, Precision::F32);
}

/// The tiny model in a folder, with a neuron of its first layer that is more than an f16 can say for the token "king",
/// and hardly anything for others. Nothing that comes after looks at it, so that in f32 it does no harm.
fn with_a_large_neuron(folder: &Path) {
    const KING: usize = 454;
    const HIDDEN: usize = 32;
    const WIDE: usize = 64;
    let tiny = isovec_test_support::data("tiny-bert");
    let mut file = std::fs::read(tiny.join("model.safetensors")).unwrap();
    let header = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let tensors: serde_json::Value = serde_json::from_slice(&file[8..header]).unwrap();
    let mut set = |name: &str, places: &mut dyn Iterator<Item = usize>, value: f32| {
        let first = tensors[name]["data_offsets"][0].as_u64().unwrap() as usize;
        for place in places {
            let at = header + first + place * 4;
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    };
    let layer = |name: &str| format!("encoder.layer.0.{name}");
    // Almost all of the token's row is one column, which the norm makes √32 of.
    let words = "embeddings.word_embeddings.weight";
    set(words, &mut [KING * HIDDEN + 3].into_iter(), 100.0);
    let behind = layer("attention.output.dense.weight");
    set(&behind, &mut (0..HIDDEN * HIDDEN), 0.0);
    let up = layer("intermediate.dense.weight");
    set(&up, &mut (0..HIDDEN), 0.0);
    set(&up, &mut [3].into_iter(), 6e4);
    set(
        &layer("intermediate.dense.bias"),
        &mut [0].into_iter(),
        -2.1e5,
    );
    let down = layer("output.dense.weight");
    set(&down, &mut (0..HIDDEN).map(|row| row * WIDE), 0.0);
    let config = std::fs::read(tiny.join("config.json")).unwrap();
    written_with_tiny_files(folder, &config, &file);
}

/// A text that 16 bits are too few for is an error that names it, and never a wrong vector.
#[test]
fn an_overflow_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    with_a_large_neuron(folder.path());
    let Some(small) = load(folder.path().into()) else {
        return;
    };
    let plain = Which::Portable.configure(EmbeddingConfig::default());
    let large = pollster::block_on(Embedder::builder(folder.path()).config(plain).load()).unwrap();
    let texts = ["the last room", "the king saw it", "an end"];
    pollster::block_on(large.embed(texts)).unwrap();
    let error = pollster::block_on(small.embed(texts)).unwrap_err();
    assert!(matches!(error, Error::NotFinite { text: 1 }), "{error}");
    pollster::block_on(small.embed([texts[0], texts[2]])).unwrap();
}
