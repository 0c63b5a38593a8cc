//! `deterministic_compute`: a text's vector is the same to the last bit, whatever else is asked
//! for with it, before it, or at the same time.

use std::thread;

use isovec::blocking::{Embedder, export};
use isovec::{Dtype, EmbeddingConfig, ExportOptions, ModelSource};
use isovec_parity::{Reference, bits};
use isovec_test_support::{Which, engines, mixed_texts, tiny_model};

const CALLERS: usize = 8;

fn bits_of(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|value| value.to_bits()).collect()
}

fn check(source: &ModelSource, which: Which, texts: usize) {
    let config = which
        .configure(EmbeddingConfig::default())
        .with_deterministic_compute(true)
        .with_pool_size(2);
    let load = || {
        Embedder::builder(source.clone())
            .config(config.clone())
            .load()
            .unwrap()
    };
    let embedder = load();
    assert!(embedder.capabilities().deterministic, "{}", which.name());
    let texts = mixed_texts(texts);
    let alone: Vec<Vec<u32>> = texts
        .iter()
        .map(|text| bits_of(&embedder.embed_one(text).unwrap()))
        .collect();
    let same = |what: &str, places: &[usize], embedder: &Embedder| {
        let together = embedder.embed(places.iter().map(|&place| &texts[place]));
        for (&place, vector) in places.iter().zip(&together.unwrap()) {
            assert!(
                bits_of(vector) == alone[place],
                "{}, {what}: text {place} has another vector",
                which.name()
            );
        }
    };
    let order: Vec<usize> = (0..texts.len()).collect();
    let backwards: Vec<usize> = order.iter().copied().rev().collect();
    let some: Vec<usize> = order.iter().copied().step_by(3).collect();
    same("all in one call", &order, &embedder);
    same("again", &order, &embedder);
    same("in another order", &backwards, &embedder);
    same("with other texts", &some, &embedder);
    same("the model loaded again", &order, &load());
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (same, embedder, order) = (&same, &embedder, &order);
            scope.spawn(move || {
                // Every caller with its own texts, in its own order.
                let own: Vec<usize> = order.iter().copied().skip(caller).step_by(2).collect();
                same("with other callers", &own, embedder);
            });
        }
    });
    let knob = embedder.effective_config();
    let knob = knob.get("session.deterministic_compute").unwrap();
    assert!(knob.honoured && knob.used == "true", "{knob:?}");
}

#[test]
fn the_tiny_model_on_every_engine() {
    for which in engines() {
        check(&tiny_model(), which, 48);
    }
}

#[test]
fn minilm_on_onnx_runtime() {
    let Some(model) = isovec_test_support::minilm() else {
        return;
    };
    if engines().contains(&Which::OnnxRuntime) {
        check(&model, Which::OnnxRuntime, 48);
    }
}

/// The portable engine, in any batch and on any number of threads, gives the bits that it gives
/// everywhere: the browser's tests hold it to the same numbers.
fn same_bits(source: &ModelSource, reference: &Reference, expected: u64) {
    same_bits_of(
        &[(1, 1), (1, 32), (2, 32), (3, 7)],
        source,
        reference,
        expected,
    );
}

/// The same on so many threads, with so many texts in a batch.
fn same_bits_of(
    sizes: &[(usize, usize)],
    source: &ModelSource,
    reference: &Reference,
    expected: u64,
) {
    for &(threads, texts) in sizes {
        let config = bits::config()
            .with_intra_op_threads(threads)
            .with_max_batch_size(texts)
            .with_max_batch_tokens(1 << 14);
        let hash = pollster::block_on(async {
            let embedder = isovec::Embedder::builder(source.clone())
                .config(config)
                .load()
                .await
                .unwrap();
            bits::hash(&embedder, reference).await.unwrap()
        });
        assert_eq!(
            hash, expected,
            "{threads} threads, {texts} texts: 0x{hash:x} is not 0x{expected:x}"
        );
    }
}

/// The same of int8 weights, here from the file that `export` writes. The browser's tests make them
/// at load.
fn same_bits_in(dtype: Dtype, source: &ModelSource, reference: &Reference, expected: u64) {
    let folder = tempfile::tempdir().unwrap();
    let config = EmbeddingConfig::default().with_dtype(dtype);
    export(
        source.clone(),
        folder.path(),
        config,
        ExportOptions::default(),
    )
    .unwrap();
    let place = folder.path().to_path_buf().into();
    same_bits_of(&[(1, 1), (2, 32)], &place, reference, expected);
}

#[test]
fn the_tiny_model_has_the_same_bits_everywhere() {
    let (model, reference) = (tiny_model(), Reference::tiny());
    same_bits(&model, &reference, bits::TINY);
    same_bits_in(Dtype::Int8, &model, &reference, bits::TINY_INT8);
}

#[test]
fn minilm_has_the_same_bits_everywhere() {
    if let Some(model) = isovec_test_support::minilm() {
        let reference = Reference::minilm();
        same_bits(&model, &reference, bits::MINILM);
        same_bits_in(Dtype::Int8, &model, &reference, bits::MINILM_INT8);
        same_bits_in(Dtype::Int8Fast, &model, &reference, bits::MINILM_INT8_FAST);
    }
}
