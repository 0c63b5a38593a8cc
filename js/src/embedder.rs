//! The embedder behind the TypeScript class of that name.

use isovec::{Cancel, EmbedOptions, Embedder, EmbeddingConfig, LoadOptions, ModelSource, Prompt};
use js_sys::WebAssembly::Memory;
use js_sys::{ArrayBuffer, Map};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};

use crate::embeddings::RawEmbeddings;
use crate::error::{to_js, with_kind};
use crate::files;
use crate::panic;

/// What an `AbortSignal` is turned into.
#[wasm_bindgen]
#[derive(Debug, Clone, Default)]
pub struct RawCancel(Cancel);

#[wasm_bindgen]
impl RawCancel {
    /// A cancellation that nobody has triggered.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A loaded model.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct RawEmbedder(Embedder);

#[wasm_bindgen]
impl RawEmbedder {
    /// Loads a model from its files: a `Map` from path to `Uint8Array`, which is emptied, so that
    /// the arrays are free when the model is loaded. `config` is the Rust configuration as JSON.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    pub async fn load(
        origin: String,
        files: Map,
        config: String,
        cancel: &RawCancel,
    ) -> Result<Self, JsValue> {
        panic::remember();
        let config: EmbeddingConfig = serde_json::from_str(&config).map_err(|error| {
            with_kind(
                "Config",
                &format!("the configuration is not usable: {error}"),
            )
        })?;
        let files = files::take(&files)?;
        files::grow_once(&files, config.model.dtype);
        let options = LoadOptions::default().with_cancel(cancel.0.clone());
        let source = ModelSource::contents(origin, files);
        Embedder::load_with(source, config, options)
            .await
            .map(Self)
            .map_err(|error| to_js(&error))
    }

    /// Embeds texts in their order. `role` is `default`, `query` or `passage`.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    pub async fn embed(
        &self,
        texts: Vec<String>,
        role: String,
        cancel: &RawCancel,
    ) -> Result<RawEmbeddings, JsValue> {
        let prompt = match role.as_str() {
            "query" => Prompt::Query,
            "passage" => Prompt::Passage,
            _ => Prompt::Default,
        };
        let options = EmbedOptions::default()
            .with_cancel(cancel.0.clone())
            .with_prompt(prompt);
        let embeddings = self.0.embed_with(texts, options).await;
        embeddings
            .map(RawEmbeddings::from)
            .map_err(|error| to_js(&error))
    }

    /// Tokens of a text before truncation.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[wasm_bindgen(js_name = countTokens)]
    pub fn count_tokens(&self, text: &str) -> Result<usize, JsValue> {
        self.0.count_tokens(text).map_err(|error| to_js(&error))
    }

    /// Components of a vector.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        self.0.dimension()
    }

    /// Tokens of a text that the model sees.
    #[wasm_bindgen(getter, js_name = maxLength)]
    pub fn max_length(&self) -> usize {
        self.0.max_length()
    }

    /// What was done since the model was loaded, and the bytes of the module's memory, as JSON.
    pub fn stats(&self) -> String {
        let mut stats = serde_json::json!(self.0.stats());
        let memory: Memory = wasm_bindgen::memory().unchecked_into();
        let buffer: ArrayBuffer = memory.buffer().unchecked_into();
        stats["memory"] = serde_json::json!({ "wasm_bytes": buffer.byte_length() });
        stats.to_string()
    }

    /// Everything that is known of the model, as JSON: provider, fingerprint, effective
    /// configuration, similarity, description.
    pub fn about(&self) -> String {
        serde_json::json!({
            "provider": self.0.provider(),
            "fingerprint": self.0.fingerprint(),
            "effectiveConfig": self.0.effective_config(),
            "similarity": self.0.similarity(),
            "description": self.0.description(),
        })
        .to_string()
    }
}
