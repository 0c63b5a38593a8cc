//! The parity suite.

use isovec::EmbeddingConfig;
use isovec_parity::Reference;
use wasm_bindgen_test::{console_log, wasm_bindgen_test};

use crate::load;

async fn check(folder: &str, reference: Reference) {
    let config = EmbeddingConfig::default()
        .with_max_batch_size(32)
        .with_max_batch_tokens(32 * 512);
    let embedder = load(folder, config).await;
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

#[wasm_bindgen_test]
async fn minilm() {
    check("/models/all-MiniLM-L6-v2", Reference::minilm()).await;
}
