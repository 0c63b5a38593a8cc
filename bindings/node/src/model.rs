//! The model behind the TypeScript classes `Embedder`, `Classifier`, `ImageEmbedder` and `ImageClassifier`.

use std::sync::Arc;

use isovec::for_npm::{Loaded, Purpose};
use isovec::profile::{ProfileOptions, ProfileSession};
use isovec::source::Content;
use isovec::{
    Cancel, ClassifyOptions, EmbedOptions, EmbeddingConfig, ModelSource, MultiVectorOptions,
    Prompt, Scores, SparseOptions,
};
use napi::bindgen_prelude::{Float32Array, Object, Uint8ArraySlice, Uint32Array};
use napi::{Env, Result};
use napi_derive::napi;
use serde::de::DeserializeOwned;

use crate::rows::RawRows;
use crate::{error, tasks};

/// The counterpart of an `AbortSignal`.
#[napi]
#[derive(Debug, Clone, Default)]
pub struct RawCancel {
    pub(crate) cancel: Cancel,
}

#[napi]
impl RawCancel {
    /// A cancellation that is not triggered.
    #[napi(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels.
    #[napi]
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Nothing more than the module of wasm asks for: the collector frees it.
    #[napi]
    pub fn free(&self) {}
}

/// A loaded model, and the queue that joins the calls to it.
#[napi]
#[derive(Debug)]
pub struct RawModel {
    /// Nothing when it was freed.
    model: Option<Arc<Loaded>>,
    profile: Option<ProfileSession>,
}

/// What is written as JSON; `what` says what it is.
pub(crate) fn read<T: DeserializeOwned>(env: &Env, what: &str, json: &str) -> Result<T> {
    serde_json::from_str(json)
        .map_err(|fault| error::with_kind(env, "Config", &format!("{what} is not usable: {fault}")))
}

/// The options of a call for labels.
fn classifying(env: &Env, scores: Option<String>, cancel: &RawCancel) -> Result<ClassifyOptions> {
    let mut options = ClassifyOptions::default().with_cancel(cancel.cancel.clone());
    options.scores = match scores.as_deref() {
        None => None,
        Some("softmax") => Some(Scores::Softmax),
        Some("sigmoid") => Some(Scores::Sigmoid),
        Some("logits") => Some(Scores::Logits),
        Some(other) => {
            let fault = format!(
                "there are no scores {other:?}; there are \"softmax\", \"sigmoid\" and \"logits\""
            );
            return Err(error::with_kind(env, "Config", &fault));
        }
    };
    Ok(options)
}

/// The prompt of a word, as the Rust `for_npm::prompt` reads it.
fn prompt(env: &Env, word: &str) -> Result<Prompt> {
    isovec::for_npm::prompt(word).map_err(|fault| error::of(env, &fault))
}

/// The options of a call for vectors.
fn embedding(
    cancel: &RawCancel,
    prompt: Prompt,
    dimension: Option<u32>,
    normalize: Option<bool>,
) -> EmbedOptions {
    let mut options = EmbedOptions::default()
        .with_cancel(cancel.cancel.clone())
        .with_prompt(prompt);
    options.dimension = dimension.map(|dimension| dimension as usize);
    options.normalize = normalize;
    options
}

#[napi]
impl RawModel {
    /// Loads a model from its files: their paths, and for each its bytes. `config` is the Rust configuration as JSON, `output`
    /// what the model is loaded for: `vectors`, `labels`, `relevance`, `words` or `tokens`; `pixels` is the Rust `Preprocessing` as JSON, where it is
    /// loaded for pictures.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[napi]
    #[allow(clippy::too_many_arguments)]
    pub fn load<'env>(
        env: &'env Env,
        origin: String,
        names: Vec<String>,
        files: Vec<Uint8ArraySlice<'_>>,
        config: String,
        output: String,
        pixels: Option<String>,
        cancel: &RawCancel,
    ) -> Result<Object<'env>> {
        let config: EmbeddingConfig = read(env, "the configuration", &config)?;
        let pictures = pixels.map(|pixels| read(env, "the way to values", &pixels));
        let pictures = pictures.transpose()?;
        let contents = files.iter().map(|bytes| Content::from(bytes.to_vec()));
        let source = ModelSource::contents(origin, names.into_iter().zip(contents));
        let output = output.parse().map_err(|error| error::of(env, &error))?;
        let purpose = Purpose { output, pictures };
        let loading = Loaded::load(source, config, cancel.cancel.clone(), purpose);
        tasks::promise(env, loading, |model| Self {
            model: Some(Arc::new(model)),
            profile: None,
        })
    }

    /// Embeds texts in their order, together with those of other calls that are under way. `lead` is the prompt as the Rust
    /// `for_npm::prompt` reads it; `dimension` and `normalize` are those of the Rust `EmbedOptions`. Rejects with an `Error` that has the `kind`
    /// of the Rust error.
    ///
    /// # Errors
    /// The same for a prompt that there is not.
    #[napi]
    pub fn embed<'env>(
        &self,
        env: &'env Env,
        texts: Vec<String>,
        lead: String,
        cancel: &RawCancel,
        dimension: Option<u32>,
        normalize: Option<bool>,
    ) -> Result<Object<'env>> {
        let model = self.live(env)?;
        let options = embedding(cancel, prompt(env, &lead)?, dimension, normalize);
        tasks::promise(
            env,
            async move { model.embed(texts, options).await },
            RawRows::from,
        )
    }

    /// Gives texts weights of words; else as [`embed`](Self::embed). `top_k` is that of the Rust `SparseOptions`.
    ///
    /// # Errors
    /// As there.
    #[napi]
    pub fn embed_words<'env>(
        &self,
        env: &'env Env,
        texts: Vec<String>,
        lead: String,
        cancel: &RawCancel,
        top_k: Option<u32>,
    ) -> Result<Object<'env>> {
        let model = self.live(env)?;
        let mut options = SparseOptions::default()
            .with_cancel(cancel.cancel.clone())
            .with_prompt(prompt(env, &lead)?);
        options.top_k = top_k.map(|top_k| top_k as usize);
        tasks::promise(
            env,
            async move { model.embed_words(texts, options).await },
            RawRows::from,
        )
    }

    /// Gives texts' tokens vectors, of queries where the prompt is `query`; else as [`embed`](Self::embed).
    ///
    /// # Errors
    /// As there.
    #[napi]
    pub fn embed_tokens<'env>(
        &self,
        env: &'env Env,
        texts: Vec<String>,
        lead: String,
        cancel: &RawCancel,
    ) -> Result<Object<'env>> {
        let model = self.live(env)?;
        let options = MultiVectorOptions::default()
            .with_cancel(cancel.cancel.clone())
            .with_prompt(prompt(env, &lead)?);
        tasks::promise(
            env,
            async move { model.embed_tokens(texts, options).await },
            RawRows::from,
        )
    }

    /// The tokens of ids.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[napi]
    pub fn tokens(&self, env: &Env, ids: Uint32Array) -> Result<Vec<String>> {
        let tokens = self.live(env)?.tokens(&ids);
        tokens.map_err(|fault| error::of(env, &fault))
    }

    /// Embeds pictures of which there are the values, one after another, each `[3, height, width]`; else as
    /// [`embed`](Self::embed).
    ///
    /// # Errors
    /// As there.
    #[napi]
    pub fn embed_values<'env>(
        &self,
        env: &'env Env,
        values: Float32Array,
        cancel: &RawCancel,
        dimension: Option<u32>,
        normalize: Option<bool>,
    ) -> Result<Object<'env>> {
        let options = embedding(cancel, Prompt::Default, dimension, normalize);
        let embedded = self.live(env)?.embed_values(&values, options);
        tasks::promise(env, embedded, RawRows::from)
    }

    /// Classifies texts in their order, together with those of other calls that are under way; with `seconds`, pairs of a text
    /// and a second one. `scores` is `softmax`, `sigmoid` or `logits`, or nothing for what the model's files ask for. Rejects with
    /// an `Error` that has the `kind` of the Rust error.
    ///
    /// # Errors
    /// The same for scores that there are not.
    #[napi]
    pub fn classify<'env>(
        &self,
        env: &'env Env,
        texts: Vec<String>,
        seconds: Option<Vec<String>>,
        scores: Option<String>,
        lead: String,
        cancel: &RawCancel,
    ) -> Result<Object<'env>> {
        let options = classifying(env, scores, cancel)?.with_prompt(prompt(env, &lead)?);
        let model = self.live(env)?;
        tasks::promise(
            env,
            async move { model.classify(texts, seconds, options).await },
            RawRows::from,
        )
    }

    /// Classifies pictures of which there are the values, one after another, each `[3, height, width]`; else as
    /// [`classify`](Self::classify).
    ///
    /// # Errors
    /// As there.
    #[napi]
    pub fn classify_values<'env>(
        &self,
        env: &'env Env,
        values: Float32Array,
        scores: Option<String>,
        cancel: &RawCancel,
    ) -> Result<Object<'env>> {
        let options = classifying(env, scores, cancel)?;
        let classified = self.live(env)?.classify_values(&values, options);
        tasks::promise(env, classified, RawRows::from)
    }

    /// Tokens of a text before truncation.
    ///
    /// # Errors
    /// An `Error` with the `kind` of the Rust error.
    #[napi(catch_unwind)]
    pub fn count_tokens(&self, env: &Env, text: String) -> Result<u32> {
        let tokens = self.live(env)?.count_tokens(&text);
        tokens
            .map(|tokens| tokens as u32)
            .map_err(|fault| error::of(env, &fault))
    }

    /// Numbers of a row: components of a vector, labels, or words.
    ///
    /// # Errors
    /// An `Error` of the kind `Disposed` where the model was freed, as from all others.
    #[napi(getter)]
    pub fn dimension(&self, env: &Env) -> Result<u32> {
        Ok(self.live(env)?.dimension() as u32)
    }

    /// Tokens of a text that the model sees.
    ///
    /// # Errors
    /// As of [`dimension`](Self::dimension).
    #[napi(getter)]
    pub fn max_length(&self, env: &Env) -> Result<u32> {
        Ok(self.live(env)?.max_length() as u32)
    }

    /// The statistics since the model was loaded, and the waiting calls, as JSON. There is no memory of a module.
    ///
    /// # Errors
    /// As of [`dimension`](Self::dimension).
    #[napi]
    pub fn stats(&self, env: &Env) -> Result<String> {
        Ok(self.live(env)?.stats_with(0))
    }

    /// Records work from now on, up to a number of events.
    ///
    /// # Errors
    /// An `Error` of the kind `AlreadyProfiled` while that is done already.
    #[napi]
    pub fn start_profile(&mut self, env: &Env, capacity: u32, operators: bool) -> Result<()> {
        let options = ProfileOptions::default()
            .with_capacity(capacity as usize)
            .with_operators(operators);
        let session = self.live(env)?.profile(options);
        self.profile = Some(session.map_err(|fault| error::of(env, &fault))?);
        Ok(())
    }

    /// The recorded events, as a Chrome trace.
    ///
    /// # Errors
    /// An `Error` of the kind `Config` if nothing is recorded.
    #[napi]
    pub fn finish_profile(&mut self, env: &Env) -> Result<String> {
        let Some(session) = self.profile.take() else {
            return Err(error::with_kind(env, "Config", "no profile is under way"));
        };
        Ok(session.finish().to_chrome_trace())
    }

    /// All facts about the model, as JSON: provider, fingerprint, effective configuration, metric, labels, name, the engine's
    /// capabilities, the description of its graph, height and width of the pictures that it reads.
    ///
    /// # Errors
    /// As of [`dimension`](Self::dimension).
    #[napi]
    pub fn about(&self, env: &Env) -> Result<String> {
        Ok(self.live(env)?.about())
    }

    /// Frees the model, on isovec's thread, because that may take a moment.
    ///
    /// # Errors
    /// Where the system has no thread.
    #[napi]
    pub fn free(&mut self) -> Result<()> {
        self.profile = None;
        let model = self.model.take();
        tasks::submit(Box::pin(async move { drop(model) }))
    }

    fn live(&self, env: &Env) -> Result<Arc<Loaded>> {
        live(env, &self.model)
    }
}

/// What was loaded, unless it was freed.
pub(crate) fn live<T>(env: &Env, loaded: &Option<Arc<T>>) -> Result<Arc<T>> {
    let gone = || error::with_kind(env, "Disposed", "this model was disposed; load it again");
    loaded.clone().ok_or_else(gone)
}
