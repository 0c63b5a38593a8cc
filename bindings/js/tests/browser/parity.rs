//! The parity suite.

use isovec::config::ExecutionProvider;
use isovec::{Dtype, Embedder, EmbeddingConfig};
use isovec_parity::Reference;
use wasm_bindgen_test::{console_log, wasm_bindgen_test};

use crate::{load, try_load};

async fn check(folder: &str, reference: Reference) {
    let config = EmbeddingConfig::default()
        .with_max_batch_size(32)
        .with_max_batch_tokens(32 * 512);
    report(load(folder, config).await, reference).await;
}

async fn report(embedder: Embedder, reference: Reference) {
    let report = isovec_parity::run(&embedder, &reference)
        .await
        .expect("the suite runs");
    console_log!("{}: {report}", embedder.provider());
    assert!(report.broken().is_empty(), "{}", report.broken().join("; "));
}

#[wasm_bindgen_test]
async fn the_tiny_model() {
    check("/tests/data/tiny-bert", Reference::tiny()).await;
}

/// Chromium plays a GPU where there is none; Firefox has none then. (MiniLM takes minutes that way.)
#[wasm_bindgen_test]
async fn the_tiny_model_on_webgpu() {
    let mut config = EmbeddingConfig::default();
    config.runtime.providers.execution_providers = vec![ExecutionProvider::WebGpu];
    config.runtime.providers.webgpu.software_adapter = Some(true);
    match try_load("/tests/data/tiny-bert", config).await {
        Ok(embedder) => report(embedder, Reference::tiny()).await,
        Err(error) if error.to_string().contains("there is no adapter") => {
            let agent = web_sys::window().expect("a page").navigator().user_agent();
            assert!(!agent.expect("a name").contains("Chrome"), "{error}");
        }
        Err(error) => panic!("{error}"),
    }
}

#[wasm_bindgen_test]
async fn minilm() {
    check("/models/all-MiniLM-L6-v2", Reference::minilm()).await;
}

/// What the native tests are held to as well: the query in the tab and the index on the server
/// are the same numbers.
async fn same_bits(folder: &str, reference: Reference, dtype: Dtype, bits: u64) {
    for texts in [1, 32] {
        let config = isovec_parity::bits::config()
            .with_dtype(dtype)
            .with_max_batch_size(texts)
            .with_max_batch_tokens(1 << 14);
        let embedder = load(folder, config).await;
        let hash = isovec_parity::bits::hash(&embedder, &reference)
            .await
            .expect("vectors");
        assert_eq!(
            hash, bits,
            "{dtype}, {texts} texts: 0x{hash:x} is not 0x{bits:x}"
        );
    }
}

async fn the_tiny_models_bits(dtype: Dtype, bits: u64) {
    same_bits("/tests/data/tiny-bert", Reference::tiny(), dtype, bits).await;
}

async fn minilms_bits(dtype: Dtype, bits: u64) {
    same_bits("/models/all-MiniLM-L6-v2", Reference::minilm(), dtype, bits).await;
}

#[wasm_bindgen_test]
async fn the_tiny_model_has_the_same_bits_everywhere() {
    the_tiny_models_bits(Dtype::F32, isovec_parity::bits::TINY).await;
}

#[wasm_bindgen_test]
async fn minilm_has_the_same_bits_everywhere() {
    minilms_bits(Dtype::F32, isovec_parity::bits::MINILM).await;
}

/// Natively the weights are read from an exported file; here they are made at load.
#[wasm_bindgen_test]
async fn the_tiny_model_in_int8_has_the_same_bits_everywhere() {
    the_tiny_models_bits(Dtype::Int8, isovec_parity::bits::TINY_INT8).await;
}

#[wasm_bindgen_test]
async fn minilm_in_int8_has_the_same_bits_everywhere() {
    minilms_bits(Dtype::Int8, isovec_parity::bits::MINILM_INT8).await;
}

#[wasm_bindgen_test]
async fn minilm_with_rounded_activations_has_the_same_bits_everywhere() {
    minilms_bits(Dtype::Int8Fast, isovec_parity::bits::MINILM_INT8_FAST).await;
}
