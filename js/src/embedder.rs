//! The embedder behind the TypeScript class of that name.

use isovec::{Cancel, EmbedOptions, Embedder, EmbeddingConfig, LoadOptions, ModelSource, Prompt};
use js_sys::{Array, Map, Uint8Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};

use crate::embeddings::RawEmbeddings;
use crate::error::{to_js, with_kind};
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

/// Grows wasm's memory in one step to about what loading takes, the files and the same weights in
/// the kernels' own form. Step by step it takes some 10 ms each, and the page's garbage collector
/// runs every time.
fn grow_once(files: &Map) {
    const BESIDE: usize = 16 << 20;
    let contents = Array::from(&files.values());
    let bytes = contents.iter().fold(0_usize, |sum, content| {
        let size = content
            .dyn_ref::<Uint8Array>()
            .map_or(0, Uint8Array::length);
        sum.saturating_add(size as usize)
    });
    let mut room = Vec::<u8>::new();
    // Where there is not so much, loading says so itself.
    let _ = room.try_reserve_exact(bytes.saturating_mul(2).saturating_add(BESIDE));
    std::hint::black_box(&room);
}

/// A loaded model.
#[wasm_bindgen]
#[derive(Debug, Clone)]
pub struct RawEmbedder(Embedder);

#[wasm_bindgen]
impl RawEmbedder {
    /// Loads a model from its files: a `Map` from path to `Uint8Array`, which is emptied while
    /// they are taken over, so that no file is held twice. `config` is the Rust configuration as
    /// JSON.
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
        let mut taken = Vec::new();
        grow_once(&files);
        for key in Array::from(&files.keys()) {
            let (Some(name), Ok(content)) =
                (key.as_string(), files.get(&key).dyn_into::<Uint8Array>())
            else {
                return Err(with_kind(
                    "Config",
                    "the model's files have to be a map of strings to Uint8Array",
                ));
            };
            taken.push((name, bytes::Bytes::from(content.to_vec())));
            files.delete(&key);
        }
        let options = LoadOptions::default().with_cancel(cancel.0.clone());
        let source = ModelSource::bytes(origin, taken);
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

    /// What was done since the model was loaded, as JSON.
    pub fn stats(&self) -> String {
        serde_json::json!(self.0.stats()).to_string()
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
