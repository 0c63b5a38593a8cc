//! The SDK in headless Chromium: `cargo xtask test browser` serves the models on loopback and runs
//! this by wasm-bindgen's test runner.
#![cfg(target_arch = "wasm32")]

mod hardware;
mod joined;
mod parity;

use isovec::{Embedder, EmbeddingConfig, ModelSource};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::wasm_bindgen_test_configure;

wasm_bindgen_test_configure!(run_in_browser);

/// Where `cargo xtask` serves the repository's test data and the cached models.
const SERVER: &str = "http://127.0.0.1:8787";

const FILES: [&str; 6] = [
    "config.json",
    "tokenizer.json",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "model.safetensors",
];

async fn fetch(url: &str) -> Vec<u8> {
    let window = web_sys::window().expect("the suite runs in a page");
    let response = JsFuture::from(window.fetch_with_str(url)).await;
    let response: web_sys::Response = response
        .unwrap_or_else(|_| panic!("{url}: no server"))
        .unchecked_into();
    assert!(response.ok(), "{url}: {}", response.status());
    let buffer = JsFuture::from(response.array_buffer().expect("a body"))
        .await
        .expect("the whole body");
    js_sys::Uint8Array::new(&buffer).to_vec()
}

async fn load(folder: &str, config: EmbeddingConfig) -> Embedder {
    try_load(folder, config).await.expect("the model loads")
}

async fn try_load(folder: &str, config: EmbeddingConfig) -> isovec::Result<Embedder> {
    let mut files = Vec::new();
    for file in FILES {
        files.push((
            file.to_owned(),
            fetch(&format!("{SERVER}{folder}/{file}")).await.into(),
        ));
    }
    Embedder::builder(ModelSource::bytes(folder, files))
        .config(config)
        .load()
        .await
}
