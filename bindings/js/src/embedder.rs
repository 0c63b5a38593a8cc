//! The embedder behind the TypeScript class of that name.

use std::cell::RefCell;

use isovec::profile::{ProfileOptions, ProfileSession};
use isovec::{
    Cancel, DynamicBatcher, EmbedOptions, Embedder, EmbeddingConfig, ModelSource, Prompt,
};
use isovec_js_error::{to_js, with_kind};
use js_sys::WebAssembly::Memory;
use js_sys::{ArrayBuffer, Map};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};

use crate::embeddings::RawEmbeddings;
use crate::files;
use crate::panic;

/// The counterpart of an `AbortSignal`.
#[wasm_bindgen]
#[derive(Debug, Clone, Default)]
pub struct RawCancel(Cancel);

#[wasm_bindgen]
impl RawCancel {
    /// A cancellation that is not triggered.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A loaded model, and the queue that joins the calls to it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawEmbedder {
    embedder: Embedder,
    batcher: DynamicBatcher,
    profile: RefCell<Option<ProfileSession>>,
}

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
        files::grow_once(&files, config.model.dtype)?;
        let source = ModelSource::contents(origin, files);
        let embedder = Embedder::builder(source)
            .config(config)
            .cancel(cancel.0.clone())
            .load()
            .await
            .map_err(|error| to_js(&error))?;
        let batcher = DynamicBatcher::new(&embedder);
        Ok(Self {
            embedder,
            batcher,
            profile: RefCell::default(),
        })
    }

    /// Embeds texts in their order, together with those of other calls that are under way.
    /// `role` is `default`, `query` or `passage`; `dimension` and `normalize` are those of the Rust
    /// `EmbedOptions`.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    pub async fn embed(
        &self,
        texts: Vec<String>,
        role: String,
        cancel: &RawCancel,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> Result<RawEmbeddings, JsValue> {
        let prompt = match role.as_str() {
            "default" => Prompt::Default,
            "query" => Prompt::Query,
            "passage" => Prompt::Passage,
            // Another prompt than the one that was meant gives vectors that nobody can tell apart.
            other => {
                return Err(with_kind(
                    "Config",
                    &format!(
                        "there is no role {other:?}; there are \"default\", \"query\" and \"passage\""
                    ),
                ));
            }
        };
        let mut options = EmbedOptions::default()
            .with_cancel(cancel.0.clone())
            .with_prompt(prompt);
        options.dimension = dimension;
        options.normalize = normalize;
        let embeddings = self.batcher.embed_with(texts, options).await;
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
        self.embedder
            .count_tokens(text)
            .map_err(|error| to_js(&error))
    }

    /// Components of a vector.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        self.embedder.dimension()
    }

    /// Tokens of a text that the model sees.
    #[wasm_bindgen(getter, js_name = maxLength)]
    pub fn max_length(&self) -> usize {
        self.embedder.max_length()
    }

    /// The statistics since the model was loaded, the waiting calls, and the bytes of the module's memory, as JSON.
    pub fn stats(&self) -> String {
        let mut stats = serde_json::json!(self.embedder.stats());
        stats["queue"] = serde_json::json!(self.batcher.counts());
        let memory: Memory = wasm_bindgen::memory().unchecked_into();
        let buffer: ArrayBuffer = memory.buffer().unchecked_into();
        stats["memory"] = serde_json::json!({ "wasm_bytes": buffer.byte_length() });
        stats.to_string()
    }

    /// Records work from now on, up to a number of events.
    ///
    /// # Errors
    /// An `Error` of the kind `AlreadyProfiled` while that is done already.
    #[wasm_bindgen(js_name = startProfile)]
    pub fn start_profile(&self, capacity: u32, operators: bool) -> Result<(), JsValue> {
        let options = ProfileOptions::default()
            .with_capacity(capacity as usize)
            .with_operators(operators);
        let session = self.embedder.profile(options);
        self.profile
            .replace(Some(session.map_err(|error| to_js(&error))?));
        Ok(())
    }

    /// The recorded events, as a Chrome trace.
    ///
    /// # Errors
    /// An `Error` of the kind `Config` if nothing is recorded.
    #[wasm_bindgen(js_name = finishProfile)]
    pub fn finish_profile(&self) -> Result<String, JsValue> {
        let Some(session) = self.profile.take() else {
            return Err(with_kind("Config", "no profile is under way"));
        };
        Ok(session.finish().to_chrome_trace())
    }

    /// All facts about the model, as JSON: provider, fingerprint, effective configuration, metric, name, the engine's
    /// capabilities, the description of its graph.
    pub fn about(&self) -> String {
        serde_json::json!({
            "provider": self.embedder.provider(),
            "fingerprint": self.embedder.fingerprint(),
            "effectiveConfig": self.embedder.effective_config(),
            "metric": self.embedder.metric(),
            "model": self.embedder.model_name(),
            "capabilities": self.embedder.capabilities(),
            "description": self.embedder.description(),
        })
        .to_string()
    }
}
