//! The one configuration: every knob, on both targets.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use isovec_engine::config::{EngineChoice, EngineConfig};
use isovec_engine::head::Pooling;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How a model is found, loaded and run. `None` in a field means: as the model's own files say,
/// or the default named there.
///
/// In JSON the engine's own keys stand beside the groups: `{"engine": "portable", "session": {...},
/// "text": {...}, "batching": {...}, "hub": {...}, "model": {...}}`. An unknown key is an error.
///
/// ```
/// # use isovec::EmbeddingConfig;
/// let config = EmbeddingConfig::default().with_max_length(128).with_max_batch_tokens(512).build()?;
/// # Ok::<(), isovec::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
#[non_exhaustive]
pub struct EmbeddingConfig {
    /// What the engine reads: which one, and how its sessions compute.
    #[serde(flatten)]
    pub runtime: EngineConfig,
    /// From text to vector.
    pub text: TextConfig,
    /// How texts are put together.
    pub batching: BatchingConfig,
    /// Where model ids are resolved.
    pub hub: HubConfig,
    /// Which of a model's files are used.
    pub model: ModelConfig,
}

/// From text to vector. What is set here overrides the model's sentence-transformers files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TextConfig {
    /// Tokens of a text that the model sees, special ones included; the rest is cut off and
    /// reported. At most what the model's position table holds.
    pub max_length: Option<usize>,
    /// How positions become one vector.
    pub pooling: Option<Pooling>,
    /// Whether vectors are scaled to unit length.
    pub normalize: Option<bool>,
    /// Keep only the first components (matryoshka), cut before normalising.
    pub dimension: Option<usize>,
    /// Prompts by name, added to the model's own or replacing them. A prompt is put before the
    /// text as it is, so it wants its own trailing space.
    pub prompts: BTreeMap<String, String>,
    /// The prompt of `embed_query`.
    pub query_prompt: Option<String>,
    /// The prompt of `embed_passage`.
    pub passage_prompt: Option<String>,
}

/// How texts are put together into batches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BatchingConfig {
    /// Texts in a batch. `None`: 32.
    pub max_batch_size: Option<usize>,
    /// Tokens in a batch, padding included. `None`: 256, which on CPUs is faster than more,
    /// because sorted small batches carry almost no padding and stay in the cache. A single
    /// longer text is a batch of its own.
    pub max_batch_tokens: Option<usize>,
}

/// Where model ids are resolved. `None` means the variable that Hugging Face's own tools read, or
/// their default.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct HubConfig {
    /// Branch, tag or commit. `None`: `main`. Name a commit to pin the model.
    pub revision: Option<String>,
    /// The hub's address. `None`: `HF_ENDPOINT`, else `https://huggingface.co`.
    pub endpoint: Option<String>,
    /// Access token, for private and gated models. `None`: `HF_TOKEN`, else the token file. It is
    /// never shown in debug output and never serialised.
    #[serde(skip_serializing)]
    pub token: Option<String>,
    /// The cache's folder. `None`: `HF_HUB_CACHE`, else `HF_HOME/hub`, else the standard place.
    pub cache_dir: Option<PathBuf>,
    /// Never ask the network. `None`: `HF_HUB_OFFLINE`.
    pub offline: Option<bool>,
}

/// Which of a model's files are used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelConfig {
    /// This ONNX file (`onnx/model_quantized.onnx`) instead of the one that would be chosen.
    pub onnx_file: Option<String>,
}

impl EmbeddingConfig {
    /// Chooses the engine.
    #[must_use]
    pub fn with_engine(mut self, engine: EngineChoice) -> Self {
        self.runtime.engine = engine;
        self
    }

    /// Names ONNX Runtime's shared library.
    #[must_use]
    pub fn with_onnxruntime_library(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime.onnxruntime_library = Some(path.into());
        self
    }

    /// Sets the threads that work on one operator.
    #[must_use]
    pub fn with_intra_op_threads(mut self, threads: usize) -> Self {
        self.runtime.session.intra_op_threads = Some(threads);
        self
    }

    /// Sets how many tokens of a text the model sees.
    #[must_use]
    pub fn with_max_length(mut self, tokens: usize) -> Self {
        self.text.max_length = Some(tokens);
        self
    }

    /// Overrides the pooling.
    #[must_use]
    pub fn with_pooling(mut self, pooling: Pooling) -> Self {
        self.text.pooling = Some(pooling);
        self
    }

    /// Overrides whether vectors are scaled to unit length.
    #[must_use]
    pub fn with_normalize(mut self, normalize: bool) -> Self {
        self.text.normalize = Some(normalize);
        self
    }

    /// Keeps only the first components (matryoshka).
    #[must_use]
    pub fn with_dimension(mut self, dimension: usize) -> Self {
        self.text.dimension = Some(dimension);
        self
    }

    /// Adds or replaces a named prompt.
    #[must_use]
    pub fn with_prompt(mut self, name: impl Into<String>, prompt: impl Into<String>) -> Self {
        self.text.prompts.insert(name.into(), prompt.into());
        self
    }

    /// Sets the prompt of `embed_query`.
    #[must_use]
    pub fn with_query_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.text.query_prompt = Some(prompt.into());
        self
    }

    /// Sets the prompt of `embed_passage`.
    #[must_use]
    pub fn with_passage_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.text.passage_prompt = Some(prompt.into());
        self
    }

    /// Sets the largest number of texts in a batch.
    #[must_use]
    pub fn with_max_batch_size(mut self, texts: usize) -> Self {
        self.batching.max_batch_size = Some(texts);
        self
    }

    /// Sets the largest number of tokens in a batch, padding included.
    #[must_use]
    pub fn with_max_batch_tokens(mut self, tokens: usize) -> Self {
        self.batching.max_batch_tokens = Some(tokens);
        self
    }

    /// Pins a branch, tag or commit of the model.
    #[must_use]
    pub fn with_revision(mut self, revision: impl Into<String>) -> Self {
        self.hub.revision = Some(revision.into());
        self
    }

    /// Sets the hub's address.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: impl Into<String>) -> Self {
        self.hub.endpoint = Some(endpoint.into());
        self
    }

    /// Sets the hub's access token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.hub.token = Some(token.into());
        self
    }

    /// Sets the folder of the hub's cache.
    #[must_use]
    pub fn with_cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.hub.cache_dir = Some(folder.into());
        self
    }

    /// Sets whether the network is left alone.
    #[must_use]
    pub fn with_offline(mut self, offline: bool) -> Self {
        self.hub.offline = Some(offline);
        self
    }

    /// Chooses the ONNX file by its path inside the model.
    #[must_use]
    pub fn with_onnx_file(mut self, file: impl Into<String>) -> Self {
        self.model.onnx_file = Some(file.into());
        self
    }

    /// Checks everything that can be checked without the model. Loading checks again, and what
    /// only the model can tell with it.
    ///
    /// # Errors
    /// [`Error::Config`] with every impossible value and contradiction.
    pub fn build(self) -> Result<Self> {
        let faults = self.faults();
        if faults.is_empty() {
            Ok(self)
        } else {
            Err(Error::Config(faults))
        }
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = self.runtime.faults();
        let positive = [
            ("text.max_length", self.text.max_length),
            ("text.dimension", self.text.dimension),
            ("batching.max_batch_size", self.batching.max_batch_size),
            ("batching.max_batch_tokens", self.batching.max_batch_tokens),
        ];
        for (knob, value) in positive {
            if value == Some(0) {
                faults.push(format!("{knob} is 0; leave it out for the default"));
            }
        }
        let written = [
            ("hub.revision", self.hub.revision.as_deref()),
            ("hub.token", self.hub.token.as_deref()),
            ("model.onnx_file", self.model.onnx_file.as_deref()),
        ];
        for (knob, value) in written {
            if value.is_some_and(|value| value.trim().is_empty()) {
                faults.push(format!("{knob} is empty; leave it out for the default"));
            }
        }
        if let Some(endpoint) = &self.hub.endpoint
            && !["http://", "https://"]
                .iter()
                .any(|scheme| endpoint.starts_with(scheme))
        {
            faults.push(format!(
                "hub.endpoint is {endpoint:?}, which starts with neither http:// nor https://"
            ));
        }
        if let Some(file) = &self.model.onnx_file
            && (file.starts_with('/') || file.split(['/', '\\']).any(|part| part == ".."))
        {
            faults.push(format!(
                "model.onnx_file is {file:?}, which points outside the model"
            ));
        }
        if self.text.prompts.contains_key("") {
            faults.push("text.prompts holds a prompt without a name".into());
        }
        for (knob, own, name) in [
            ("text.query_prompt", &self.text.query_prompt, "query"),
            ("text.passage_prompt", &self.text.passage_prompt, "passage"),
        ] {
            if let (Some(one), Some(other)) = (own, self.text.prompts.get(name))
                && one != other
            {
                faults.push(format!(
                    "{knob} is {one:?}, but text.prompts.{name} is {other:?}"
                ));
            }
        }
        faults
    }
}

/// Shows whether there is a token, never which.
impl fmt::Debug for HubConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubConfig")
            .field("revision", &self.revision)
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("cache_dir", &self.cache_dir)
            .field("offline", &self.offline)
            .finish()
    }
}

/// The same shape with a place for keys that nobody knows: serde's own check does not work
/// beside a flattened group.
#[derive(Deserialize)]
struct Unchecked {
    #[serde(flatten)]
    runtime: EngineConfig,
    #[serde(default)]
    text: TextConfig,
    #[serde(default)]
    batching: BatchingConfig,
    #[serde(default)]
    hub: HubConfig,
    #[serde(default)]
    model: ModelConfig,
    #[serde(flatten)]
    unknown: BTreeMap<String, serde::de::IgnoredAny>,
}

impl TryFrom<Unchecked> for EmbeddingConfig {
    type Error = Error;

    fn try_from(unchecked: Unchecked) -> Result<Self> {
        let Unchecked {
            runtime,
            text,
            batching,
            hub,
            model,
            unknown,
        } = unchecked;
        if unknown.is_empty() {
            return Ok(Self {
                runtime,
                text,
                batching,
                hub,
                model,
            });
        }
        Err(Error::Config(
            unknown
                .into_keys()
                .map(|key| format!("there is no knob `{key}`"))
                .collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_usable_and_survives_json() {
        let config = EmbeddingConfig::default().build().unwrap();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<EmbeddingConfig>(&json).unwrap(),
            config
        );
        assert_eq!(
            serde_json::from_str::<EmbeddingConfig>("{}").unwrap(),
            config
        );
    }

    #[test]
    fn the_engines_keys_stand_beside_the_groups() {
        let json = r#"{"engine": "portable", "session": {"intra_op_threads": 2}, "text": {"pooling": "cls"}}"#;
        let config: EmbeddingConfig = serde_json::from_str(json).unwrap();
        let built = EmbeddingConfig::default()
            .with_engine(EngineChoice::Portable)
            .with_intra_op_threads(2)
            .with_pooling(Pooling::Cls);
        assert_eq!(config, built);
    }

    #[test]
    fn unknown_keys_are_refused_at_every_level() {
        for json in [
            r#"{"enginee": "portable"}"#,
            r#"{"text": {"max_len": 3}}"#,
            r#"{"session": {"threads": 3}}"#,
            r#"{"engine": "cuda"}"#,
        ] {
            assert!(
                serde_json::from_str::<EmbeddingConfig>(json).is_err(),
                "{json}"
            );
        }
    }

    #[test]
    fn all_faults_come_in_one_error() {
        let error = EmbeddingConfig::default()
            .with_intra_op_threads(0)
            .with_max_length(0)
            .with_dimension(0)
            .with_max_batch_size(0)
            .with_max_batch_tokens(0)
            .with_revision(" ")
            .with_endpoint("huggingface.co")
            .with_onnx_file("../secret.onnx")
            .with_query_prompt("a: ")
            .with_prompt("query", "b: ")
            .build()
            .unwrap_err();
        let Error::Config(faults) = &error else {
            panic!("{error}")
        };
        assert_eq!(faults.len(), 9, "{faults:#?}");
    }

    #[test]
    fn the_token_stays_out_of_debug_and_json() {
        let config = EmbeddingConfig::default().with_token("hf_secret");
        assert!(!format!("{config:?}").contains("hf_secret"));
        assert!(
            !serde_json::to_string(&config)
                .unwrap()
                .contains("hf_secret")
        );
    }
}
