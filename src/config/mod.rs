//! The configuration: every knob, on both targets.

mod builder;
mod device;
mod dtype;
mod embedding_cache;
mod io;
mod presets;
mod providers;
mod removed;
mod runtime;
mod suggest;
mod truncation;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use isovec_engine::config::{MemoryConfig, SessionConfig};
pub use isovec_engine::effective::{EffectiveConfig, Knob};
pub use isovec_model::head::Pooling;

pub use device::Device;
pub use dtype::Dtype;
pub use embedding_cache::EmbeddingCacheConfig;
pub use io::IoConfig;
pub use providers::{
    CudaOptions, ExecutionProvider, ProvidersConfig, TensorRtOptions, UnknownProvider,
    WebGpuOptions,
};
pub use runtime::{EngineChoice, RuntimeConfig};
pub use truncation::Truncation;

use suggest::suggest;

use crate::error::{Error, Result};

/// How a model is found, loaded and run. `None` in a field means the value in the model's own files, or the default
/// that is stated there.
///
/// In JSON the engine's own keys are on the same level as the groups: `{"engine": "portable", "session": {...},
/// "text": {...}, "batching": {...}, "hub": {...}, "model": {...}, "embedding_cache": {...}}`. An unknown key is an
/// error.
///
/// ```
/// # use isovec::EmbeddingConfig;
/// let config = EmbeddingConfig::default().with_max_length(128).with_max_batch_tokens(512).build()?;
/// # Ok::<(), isovec::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(default, deny_unknown_fields))]
#[non_exhaustive]
pub struct EmbeddingConfig {
    /// The engine's part: which engine, and how its sessions compute.
    #[serde(flatten)]
    pub runtime: RuntimeConfig,
    /// From text to vector.
    pub text: TextConfig,
    /// How texts are put together.
    pub batching: BatchingConfig,
    /// Where model ids are resolved.
    pub hub: HubConfig,
    /// Which of a model's files are used.
    pub model: ModelConfig,
    /// The cache of vectors.
    pub embedding_cache: EmbeddingCacheConfig,
}

/// From text to vector. These knobs override the model's sentence-transformers files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TextConfig {
    /// Tokens of a text that the model sees, special tokens included; the rest is cut off and reported. More than the
    /// model has positions for is an error. `None`: the model's files, else 512.
    pub max_length: Option<usize>,
    /// Which part of a text that is too long the model sees. `None`: as the tokenizer's files say,
    /// else the start.
    pub truncation: Option<Truncation>,
    /// How positions become one vector. `None`: the model's files; an error where they do not say.
    pub pooling: Option<Pooling>,
    /// Whether vectors are scaled to unit length. `None`: the model's files, else true.
    pub normalize: Option<bool>,
    /// Keep only the first components (matryoshka), cut before normalising. `None`: all that the
    /// model gives.
    pub dimension: Option<usize>,
    /// Prompts by name, added to the model's own or replacing them. A prompt is put before the text without change,
    /// so end it with a space. Empty: the model's own.
    pub prompts: BTreeMap<String, String>,
    /// The prompt of `embed_query`. `None`: the one named `query` in `prompts` or in the model's
    /// files, else the model's default prompt.
    pub query_prompt: Option<String>,
    /// The prompt of `embed_passage`. `None`: the one named `document`, `passage` or `corpus` in
    /// `prompts` or in the model's files, else the model's default prompt.
    pub passage_prompt: Option<String>,
}

/// How texts are put together into batches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct BatchingConfig {
    /// Texts in a batch. `None`: 32, or 128 on a GPU.
    pub max_batch_size: Option<usize>,
    /// Rows of a batch times its longest row, in tokens. A single longer text is a batch of its own. `None`: 256, which on CPUs is
    /// faster than more, because sorted small batches have almost no padding and stay in the processor's cache, or
    /// 8192 on a GPU; if the engine pads (ONNX Runtime), the measured size after half a minute of work.
    pub max_batch_tokens: Option<usize>,
    /// Whether a [`DynamicBatcher`](crate::DynamicBatcher) adjusts the size of its batches to measured times, below
    /// `max_batch_tokens`. `None`: true.
    pub dynamic_batching: Option<bool>,
    /// Texts that an adjusted batch may always have, however long they take. `None`: 1.
    pub min_batch_size: Option<usize>,
    /// Number of texts that a batcher waits for, up to `max_wait`. `None`: `max_batch_size`.
    pub preferred_batch_size: Option<usize>,
    /// How long a text waits for other texts while the engine is idle (`"5ms"`), at most 60 s. While the engine works,
    /// texts gather anyway. `None`: not at all, or 5 ms if `preferred_batch_size` is set.
    #[serde(with = "humantime_serde::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub max_wait: Option<Duration>,
    /// How long an answer may take; adjusted batches are as large as this allows (`"100ms"`). It does not limit the
    /// queue; `max_queue` does. `None`: 100 ms.
    #[serde(with = "humantime_serde::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub target_latency: Option<Duration>,
    /// Whether batches are adjusted for more texts a second instead; a larger batch has to bring 2% more. `None`: false.
    pub throughput_optimization: Option<bool>,
    /// Texts that may wait in a batcher; a call past this is refused with `Overloaded`, which says when to try again.
    /// `None`: 8192.
    pub max_queue: Option<usize>,
    /// Tokens that may wait in a batcher; more are refused. `None`: 1,048,576, or as many as 64 MiB of pictures have.
    pub max_queue_tokens: Option<usize>,
}

impl BatchingConfig {
    /// The default number of texts in a batch on a processor.
    pub(crate) const MAX_BATCH_SIZE: usize = 32;
    /// The longest `max_wait`: a text that waits longer is lost rather than waiting.
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    fn contradictions(&self) -> Vec<String> {
        let mut faults = Vec::new();
        // The default depends on what computes; what is past it is cut to it, and said.
        let max = self.max_batch_size.unwrap_or(usize::MAX);
        for (knob, value) in [
            ("min_batch_size", self.min_batch_size),
            ("preferred_batch_size", self.preferred_batch_size),
        ] {
            if let Some(value) = value
                && value > max
            {
                faults.push(format!(
                    "batching.{knob} is {value}, and batching.max_batch_size is {max}"
                ));
            }
        }
        if let Some(wait) = self.max_wait
            && wait > Self::LONGEST_WAIT
        {
            faults.push(format!(
                "batching.max_wait is {wait:?}; a text may wait for companions up to 60s"
            ));
        }
        if let Some(target) = self.target_latency {
            if target.is_zero() {
                faults.push("batching.target_latency is 0; leave it out for the default".into());
            } else if let Some(wait) = self.max_wait
                && wait >= target
            {
                faults.push(format!(
                    "batching.max_wait is {wait:?}, which alone takes batching.target_latency, {target:?}"
                ));
            }
        }
        if self.dynamic_batching == Some(false) {
            for (knob, set) in [
                ("min_batch_size", self.min_batch_size.is_some()),
                ("target_latency", self.target_latency.is_some()),
                (
                    "throughput_optimization",
                    self.throughput_optimization == Some(true),
                ),
            ] {
                if set {
                    faults.push(format!(
                        "batching.{knob} is set, and batching.dynamic_batching, which reads it, is off"
                    ));
                }
            }
        }
        if self.throughput_optimization == Some(true) && self.target_latency.is_some() {
            faults.push(
                "batching.throughput_optimization and batching.target_latency exclude each other; set only one"
                    .into(),
            );
        }
        faults
    }
}

/// Where model ids are resolved. Without effect in a browser, where the page fetches. `None` means the variable that
/// Hugging Face's own tools read, or their default.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Loads this ONNX file (such as `onnx/model_quantized.onnx`) instead of the default choice. `None`: safetensors
    /// of a family that isovec converts, else ONNX.
    pub onnx_file: Option<String>,
    /// How the weights are stored. `None`: as in the chosen file.
    pub dtype: Option<Dtype>,
    /// Hash the weights at every load. Else the hash of a checkpoint is kept in isovec's cache, and taken from there while its files
    /// are of the same size, time and place on the disk. `None`: false.
    pub verify: Option<bool>,
}

impl EmbeddingConfig {
    /// Checks everything that can be checked without the model. Loading checks again, together with facts that only
    /// the model has.
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

    /// The knobs that are set, as JSON: the content of a file for `--config`, or the `config` of the npm package. The
    /// hub's token is left out.
    pub fn to_knobs(&self) -> serde_json::Value {
        // A configuration is written without what could fail: its maps have names for keys.
        let mut knobs = serde_json::to_value(self).unwrap_or_default();
        let default = serde_json::to_value(Self::default()).unwrap_or_default();
        without(&mut knobs, &default);
        knobs
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = self.runtime.faults();
        let positive = [
            ("text.max_length", self.text.max_length),
            ("text.dimension", self.text.dimension),
            ("batching.max_batch_size", self.batching.max_batch_size),
            ("batching.max_batch_tokens", self.batching.max_batch_tokens),
            ("batching.min_batch_size", self.batching.min_batch_size),
            (
                "batching.preferred_batch_size",
                self.batching.preferred_batch_size,
            ),
            ("batching.max_queue", self.batching.max_queue),
            ("batching.max_queue_tokens", self.batching.max_queue_tokens),
        ];
        for (knob, value) in positive {
            if value == Some(0) {
                faults.push(format!("{knob} is 0; leave it out for the default"));
            }
        }
        faults.extend(self.batching.contradictions());
        faults.extend(self.embedding_cache.contradictions());
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

/// Removes the knobs of a group that equal those of another one.
fn without(group: &mut serde_json::Value, other: &serde_json::Value) {
    if let serde_json::Value::Object(group) = group {
        group.retain(|name, value| {
            let other = &other[name];
            without(value, other);
            // A map that somebody put there stays, also where it is empty.
            let is_bare =
                other.is_object() && value.as_object().is_some_and(serde_json::Map::is_empty);
            value != other && !is_bare
        });
    }
}

/// Shows whether there is a token, but never the token.
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

/// The keys at the top level of a configuration.
const TOP: [&str; 12] = [
    "engine",
    "onnxruntime_library",
    "remember",
    "session",
    "providers",
    "io",
    "memory",
    "text",
    "batching",
    "hub",
    "model",
    "embedding_cache",
];

impl<'de> Deserialize<'de> for EmbeddingConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Groups).map_err(|error| {
            let instead = removed::instead(&error);
            instead.map_or(error, D::Error::custom)
        })
    }
}

/// Reads the keys one by one. A derived `Deserialize` of a flattened group would hold all values in a form of its own first,
/// which is code that a page downloads, and it could not name unknown keys.
struct Groups;

impl<'de> Visitor<'de> for Groups {
    type Value = EmbeddingConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EmbeddingConfig, A::Error> {
        let mut config = EmbeddingConfig::default();
        let runtime = &mut config.runtime;
        let mut seen = Vec::new();
        let mut unknown = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "engine" => runtime.engine = map.next_value()?,
                "onnxruntime_library" => runtime.onnxruntime_library = map.next_value()?,
                "remember" => runtime.remember = map.next_value()?,
                "session" => runtime.session = map.next_value()?,
                "providers" => runtime.providers = map.next_value()?,
                "io" => runtime.io = map.next_value()?,
                "memory" => runtime.memory = map.next_value()?,
                "text" => config.text = map.next_value()?,
                "batching" => config.batching = map.next_value()?,
                "hub" => config.hub = map.next_value()?,
                "model" => config.model = map.next_value()?,
                "embedding_cache" => config.embedding_cache = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    let hint = suggest(&key, TOP.into_iter());
                    unknown.push(format!("there is no knob or group {key:?}; {hint}"));
                }
            }
            if seen.contains(&key) {
                return Err(A::Error::custom(format!("{key:?} is there twice")));
            }
            seen.push(key);
        }
        match unknown.is_empty() {
            true => Ok(config),
            false => {
                unknown.sort();
                Err(A::Error::custom(Error::Config(unknown)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds the faults of a configuration to how each of them begins, in their order.
    fn refused(config: EmbeddingConfig, faults: &[&str]) {
        let found = match config.build() {
            Err(Error::Config(found)) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(found.len(), faults.len(), "{found:#?}");
        for (found, begins) in found.iter().zip(faults) {
            assert!(found.starts_with(begins), "{found}, not {begins}");
        }
    }

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
    fn knobs_say_the_same_as_the_configuration() {
        let all = [
            r#"{}"#,
            r#"{"providers": {"options": {"webgpu": {}, "coreml": {"a": "1"}}}}"#,
            r#"{"session": {"pool_size": 2}, "text": {"prompts": {"query": ""}}}"#,
        ];
        for json in all {
            let config: EmbeddingConfig = serde_json::from_str(json).unwrap();
            let knobs = config.to_knobs();
            let again: EmbeddingConfig = serde_json::from_value(knobs.clone()).unwrap();
            assert_eq!(again, config, "{knobs}");
        }
        let nothing = EmbeddingConfig::default().to_knobs();
        assert_eq!(nothing, serde_json::json!({}));
    }

    #[test]
    fn a_knob_that_is_gone_says_what_to_do() {
        let said = |json: &str| {
            let error = serde_json::from_str::<EmbeddingConfig>(json).unwrap_err();
            error.to_string()
        };
        for (group, name, hint) in [
            ("session", "parallel_execution", "session.intra_op_threads"),
            ("session", "inter_op_threads", "session.pool_size"),
            ("session", "memory_pattern", "leave it out"),
            ("io", "cuda_memory_streams", "leave it out"),
        ] {
            let said = said(&format!(r#"{{"{group}": {{"{name}": true}}}}"#));
            let begins = format!("there is no knob {group}.{name} any more: ");
            assert!(said.starts_with(&begins) && said.contains(hint), "{said}");
        }
        let other = said(r#"{"session": {"parallel": true}}"#);
        assert!(other.starts_with("unknown field `parallel`"), "{other}");
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
    fn every_group_is_read_from_json() {
        let json = r#"{"session": {"pool_size": 2, "graph_optimization_level": 2},
            "providers": {"execution_providers": ["cuda", "cpu"], "cuda": {"memory_limit": 1000}},
            "io": {"io_binding": false}, "memory": {"memory_pressure_threshold": 0.5}}"#;
        let config: EmbeddingConfig = serde_json::from_str(json).unwrap();
        let built = EmbeddingConfig::default()
            .with_pool_size(2)
            .with_graph_optimization_level(2)
            .with_execution_providers([ExecutionProvider::Cuda, ExecutionProvider::Cpu])
            .with_cuda_memory_limit(1000)
            .with_io_binding(false)
            .with_memory_pressure_threshold(0.5);
        assert_eq!(config, built);
    }

    #[test]
    fn an_unknown_provider_comes_with_a_suggestion() {
        let json = r#"{"providers": {"execution_providers": ["CUDAExecutionProvider"]}}"#;
        let error = serde_json::from_str::<EmbeddingConfig>(json)
            .unwrap_err()
            .to_string();
        assert!(error.contains("did you mean \"cuda\""), "{error}");
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
    fn an_unknown_key_comes_with_the_one_that_was_meant() {
        let error = serde_json::from_str::<EmbeddingConfig>(r#"{"sesion": {}}"#).unwrap_err();
        assert!(
            error.to_string().contains("did you mean \"session\""),
            "{error}"
        );
        let all = serde_json::to_value(EmbeddingConfig::default()).unwrap();
        let keys: Vec<_> = all.as_object().unwrap().keys().collect();
        assert!(keys.iter().all(|key| TOP.contains(&key.as_str())));
        assert_eq!(keys.len(), TOP.len(), "{keys:?}");
    }

    #[test]
    fn all_faults_come_in_one_error() {
        let config = EmbeddingConfig::default()
            .with_intra_op_threads(0)
            .with_max_length(0)
            .with_dimension(0)
            .with_max_batch_size(0)
            .with_max_batch_tokens(0)
            .with_revision(" ")
            .with_endpoint("huggingface.co")
            .with_onnx_file("../secret.onnx")
            .with_query_prompt("a: ")
            .with_prompt("query", "b: ");
        refused(
            config,
            &[
                "session.intra_op_threads is 0",
                "text.max_length is 0",
                "text.dimension is 0",
                "batching.max_batch_size is 0",
                "batching.max_batch_tokens is 0",
                "hub.revision is empty",
                "hub.endpoint is \"huggingface.co\"",
                "model.onnx_file is \"../secret.onnx\"",
                "text.query_prompt is \"a: \"",
            ],
        );
    }

    #[test]
    fn durations_are_written_with_their_unit() {
        let json = r#"{"batching": {"target_latency": "50ms", "max_wait": "2ms"}}"#;
        let config: EmbeddingConfig = serde_json::from_str(json).unwrap();
        let built = EmbeddingConfig::default()
            .with_target_latency(Duration::from_millis(50))
            .with_max_wait(Duration::from_millis(2));
        assert_eq!(config, built);
        let written = serde_json::to_value(&config.batching).unwrap();
        assert_eq!(written["target_latency"], "50ms");
        assert!(
            serde_json::from_str::<EmbeddingConfig>(r#"{"batching": {"max_wait": 5}}"#).is_err()
        );
    }

    #[test]
    fn batching_knobs_that_contradict_each_other_are_named() {
        let hour = Duration::from_secs(3600);
        let config = EmbeddingConfig::default()
            .with_max_batch_size(4)
            .with_min_batch_size(5)
            .with_preferred_batch_size(6)
            .with_max_queue(0)
            .with_max_wait(hour)
            .with_target_latency(hour)
            .with_throughput_optimization(true)
            .with_dynamic_batching(false);
        refused(
            config,
            &[
                "batching.max_queue is 0",
                "batching.min_batch_size is 5",
                "batching.preferred_batch_size is 6",
                "batching.max_wait is 3600s; a text may wait",
                "batching.max_wait is 3600s, which alone takes",
                "batching.min_batch_size is set",
                "batching.target_latency is set",
                "batching.throughput_optimization is set",
                "batching.throughput_optimization and batching.target_latency",
            ],
        );
    }

    #[test]
    fn a_cache_that_could_keep_nothing_is_refused() {
        let config = EmbeddingConfig::default;
        refused(
            config()
                .with_embedding_cache_memory(0)
                .with_embedding_cache_disk(0),
            &["embedding_cache.memory is 0", "embedding_cache.disk is 0"],
        );
        refused(
            config().with_embedding_cache_folder("a"),
            &["embedding_cache.folder is set, but embedding_cache.disk"],
        );
        refused(
            config()
                .with_embedding_cache_disk(1)
                .with_embedding_cache_folder(""),
            &["embedding_cache.folder is empty"],
        );
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
