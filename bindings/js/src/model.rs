//! The model behind the TypeScript classes `Embedder`, `Classifier`, `ImageEmbedder` and `ImageClassifier`.

use std::cell::RefCell;

use isovec::for_npm::{Loaded, Purpose};
use isovec::profile::{ProfileOptions, ProfileSession};
use isovec::{
    BoxFuture, Cancel, ClassifyOptions, EmbedOptions, EmbeddingConfig, ModelSource,
    MultiVectorOptions, Prompt, Scores, SparseOptions,
};
use isovec_js_error::{to_js, with_kind};
use js_sys::WebAssembly::Memory;
use js_sys::{ArrayBuffer, Map, Promise};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};
use wasm_bindgen_futures::future_to_promise;

use crate::rows::RawRows;
use crate::{files, panic};

/// A call's rows, as JavaScript waits for them: behind a pointer, so that one task in the event loop is compiled for all calls.
fn promised(rows: BoxFuture<'static, isovec::Result<RawRows>>) -> Promise {
    future_to_promise(async {
        let rows = rows.await.map_err(|error| to_js(&error))?;
        Ok(rows.into())
    })
}

/// The counterpart of an `AbortSignal`.
#[wasm_bindgen]
#[derive(Debug, Clone, Default)]
pub struct RawCancel(pub(crate) Cancel);

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

/// The prompt of a word, as the Rust `for_npm::prompt` reads it.
fn prompt(word: &str) -> Result<Prompt, JsValue> {
    isovec::for_npm::prompt(word).map_err(|error| to_js(&error))
}

/// The options of a call for labels.
fn classifying(scores: Option<String>, cancel: &RawCancel) -> Result<ClassifyOptions, JsValue> {
    let mut options = ClassifyOptions::default().with_cancel(cancel.0.clone());
    options.scores = match scores.as_deref() {
        None => None,
        Some("softmax") => Some(Scores::Softmax),
        Some("sigmoid") => Some(Scores::Sigmoid),
        Some("logits") => Some(Scores::Logits),
        Some(other) => {
            return Err(with_kind(
                "Config",
                &format!(
                    "there are no scores {other:?}; there are \"softmax\", \"sigmoid\" and \"logits\""
                ),
            ));
        }
    };
    Ok(options)
}

/// A loaded model, and the queue that joins the calls to it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct RawModel {
    model: Loaded,
    profile: RefCell<Option<ProfileSession>>,
}

#[wasm_bindgen]
impl RawModel {
    /// Loads a model from its files: a `Map` from path to `Uint8Array`, which is emptied, so that
    /// the arrays are free when the model is loaded. `config` is the Rust configuration as JSON, `output`
    /// what the model is loaded for: `vectors`, `labels`, `relevance`, `words` or `tokens`; `pixels` is the Rust `Preprocessing` as JSON, where it is loaded for
    /// pictures.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    pub async fn load(
        origin: String,
        files: Map,
        config: String,
        output: &str,
        pixels: Option<String>,
        cancel: &RawCancel,
    ) -> Result<Self, JsValue> {
        panic::remember();
        let config: EmbeddingConfig =
            // Not `from_str`: one reader of JSON keeps the page's module small.
            serde_json::from_slice(config.as_bytes()).map_err(|error| {
                with_kind(
                    "Config",
                    &format!("the configuration is not usable: {error}"),
                )
            })?;
        let files = files::take(&files)?;
        files::grow_once(&files, config.model.dtype)?;
        let source = ModelSource::contents(origin, files);
        let pictures = pixels.map(|values| serde_json::from_slice(values.as_bytes()));
        let pictures = pictures.transpose().map_err(|error| {
            with_kind(
                "Config",
                &format!("the way to values is not usable: {error}"),
            )
        })?;
        let output = output.parse().map_err(|error| to_js(&error))?;
        let purpose = Purpose { output, pictures };
        let model = Loaded::load(source, config, cancel.0.clone(), purpose)
            .await
            .map_err(|error| to_js(&error))?;
        Ok(Self {
            model,
            profile: RefCell::default(),
        })
    }

    /// Embeds texts in their order, together with those of other calls that are under way.
    /// `lead` is the prompt as the Rust `for_npm::prompt` reads it; `dimension` and `normalize` are those of the Rust
    /// `EmbedOptions`. Rejects with an `Error` that has the `kind` of the Rust error.
    ///
    /// # Errors
    /// The same for a prompt that there is not.
    #[wasm_bindgen(unchecked_return_type = "Promise<RawRows>")]
    pub fn embed(
        &self,
        texts: Vec<String>,
        lead: &str,
        cancel: &RawCancel,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> Result<Promise, JsValue> {
        let mut options = EmbedOptions::default()
            .with_cancel(cancel.0.clone())
            .with_prompt(prompt(lead)?);
        options.dimension = dimension;
        options.normalize = normalize;
        let embedded = self.model.embed(texts, options);
        Ok(promised(Box::pin(async {
            embedded.await.map(RawRows::from)
        })))
    }

    /// Gives texts weights of words; else as [`embed`](Self::embed). `top_k` is that of the Rust `SparseOptions`.
    ///
    /// # Errors
    /// As there.
    #[wasm_bindgen(js_name = embedWords, unchecked_return_type = "Promise<RawRows>")]
    pub fn embed_words(
        &self,
        texts: Vec<String>,
        lead: &str,
        cancel: &RawCancel,
        top_k: Option<usize>,
    ) -> Result<Promise, JsValue> {
        let mut options = SparseOptions::default()
            .with_cancel(cancel.0.clone())
            .with_prompt(prompt(lead)?);
        options.top_k = top_k;
        let embedded = self.model.embed_words(texts, options);
        Ok(promised(Box::pin(async {
            embedded.await.map(RawRows::from)
        })))
    }

    /// Gives texts' tokens vectors, of queries where the prompt is `query`; else as [`embed`](Self::embed).
    ///
    /// # Errors
    /// As there.
    #[wasm_bindgen(js_name = embedTokens, unchecked_return_type = "Promise<RawRows>")]
    pub fn embed_tokens(
        &self,
        texts: Vec<String>,
        lead: &str,
        cancel: &RawCancel,
    ) -> Result<Promise, JsValue> {
        let options = MultiVectorOptions::default()
            .with_cancel(cancel.0.clone())
            .with_prompt(prompt(lead)?);
        let embedded = self.model.embed_tokens(texts, options);
        Ok(promised(Box::pin(async {
            embedded.await.map(RawRows::from)
        })))
    }

    /// The tokens of ids.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    pub fn tokens(&self, ids: &[u32]) -> Result<Vec<String>, JsValue> {
        self.model.tokens(ids).map_err(|error| to_js(&error))
    }

    /// Embeds pictures of which there are the values, one after another, each `[3, height, width]`; else as
    /// [`embed`](Self::embed).
    #[wasm_bindgen(js_name = embedValues, unchecked_return_type = "Promise<RawRows>")]
    pub fn embed_values(
        &self,
        values: &[f32],
        cancel: &RawCancel,
        dimension: Option<usize>,
        normalize: Option<bool>,
    ) -> Promise {
        let mut options = EmbedOptions::default().with_cancel(cancel.0.clone());
        options.dimension = dimension;
        options.normalize = normalize;
        let embedded = self.model.embed_values(values, options);
        promised(Box::pin(async { embedded.await.map(RawRows::from) }))
    }

    /// Classifies texts in their order, together with those of other calls that are under way.
    /// With `seconds`, pairs of a text and a second one are classified. `scores` is `softmax`, `sigmoid` or `logits`, or nothing for what the model's files ask for.
    /// Rejects with an `Error` that has the `kind` of the Rust error.
    ///
    /// # Errors
    /// The same for scores that there are not.
    #[wasm_bindgen(unchecked_return_type = "Promise<RawRows>")]
    pub fn classify(
        &self,
        texts: Vec<String>,
        seconds: Option<Vec<String>>,
        scores: Option<String>,
        lead: &str,
        cancel: &RawCancel,
    ) -> Result<Promise, JsValue> {
        let options = classifying(scores, cancel)?.with_prompt(prompt(lead)?);
        let classified = self.model.classify(texts, seconds, options);
        Ok(promised(Box::pin(async {
            classified.await.map(RawRows::from)
        })))
    }

    /// Classifies pictures of which there are the values, one after another, each `[3, height, width]`; else as
    /// [`classify`](Self::classify).
    ///
    /// # Errors
    /// As there.
    #[wasm_bindgen(js_name = classifyValues, unchecked_return_type = "Promise<RawRows>")]
    pub fn classify_values(
        &self,
        values: &[f32],
        scores: Option<String>,
        cancel: &RawCancel,
    ) -> Result<Promise, JsValue> {
        let options = classifying(scores, cancel)?;
        let classified = self.model.classify_values(values, options);
        Ok(promised(Box::pin(async {
            classified.await.map(RawRows::from)
        })))
    }

    /// Tokens of a text before truncation.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[wasm_bindgen(js_name = countTokens)]
    pub fn count_tokens(&self, text: &str) -> Result<usize, JsValue> {
        self.model.count_tokens(text).map_err(|error| to_js(&error))
    }

    /// Numbers of a row: components of a vector, labels, or words.
    #[wasm_bindgen(getter)]
    pub fn dimension(&self) -> usize {
        self.model.dimension()
    }

    /// Tokens of a text that the model sees.
    #[wasm_bindgen(getter, js_name = maxLength)]
    pub fn max_length(&self) -> usize {
        self.model.max_length()
    }

    /// The statistics since the model was loaded, the waiting calls, and the bytes of the module's memory, as JSON.
    pub fn stats(&self) -> String {
        let memory: Memory = wasm_bindgen::memory().unchecked_into();
        let buffer: ArrayBuffer = memory.buffer().unchecked_into();
        self.model.stats_with(buffer.byte_length())
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
        let session = self.model.profile(options);
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

    /// All facts about the model, as JSON: provider, fingerprint, effective configuration, metric, labels, name, the engine's
    /// capabilities, the description of its graph, height and width of the pictures that it reads.
    pub fn about(&self) -> String {
        self.model.about()
    }
}
