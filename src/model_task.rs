//! What a model is for, by its files.

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_engine::EngineError;
use isovec_engine::maybe_send::BoxFuture;
use isovec_model::bundle::{LOGIT_SCORE, ROUTER_CONFIG, Routes};
use serde::{Deserialize, Serialize};

use crate::backend;
use crate::config::EmbeddingConfig;
use crate::error::Result;
use crate::model::{Watch, resolve};
use crate::sentence_transformers;
use crate::source::ModelSource;

/// The end of the names of transformers' classes that give labels.
const WITH_LABELS: &str = "ForSequenceClassification";

/// Labels of a model whose `config.json` counts none: the default of transformers' `PretrainedConfig`.
const DEFAULT_LABELS: usize = 2;

/// The end of the class of a step that weighs words.
const SPLADE: &str = ".SpladePooling";

/// The files that say what a model is for.
const DESCRIBING: [&str; 4] = [
    "modules.json",
    ROUTER_CONFIG,
    "config.json",
    "config_sentence_transformers.json",
];

/// What a model is for, and with that the handle that loads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelTask {
    /// Vectors: [`Embedder`](crate::Embedder).
    Embed,
    /// The relevance of documents to a query: [`Reranker`](crate::Reranker).
    Rerank,
    /// Labels: [`Classifier`](crate::Classifier).
    Classify,
    /// Weights of words: [`SparseEmbedder`](crate::SparseEmbedder).
    Sparse,
    /// A vector for each token: [`MultiVectorEmbedder`](crate::MultiVectorEmbedder).
    MultiVector,
    /// Vectors of pictures: `ImageEmbedder`, with the feature `image`. A caller says so: files of CLIP are for texts as well.
    EmbedImages,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    architectures: Vec<String>,
    id2label: Option<BTreeMap<String, String>>,
    num_labels: Option<usize>,
}

impl ModelTask {
    /// Reads in a model's files what it is for: a class `...ForSequenceClassification` in `config.json` gives labels, and with one
    /// label it is a reranker, as is a model with the step `LogitScore` in `modules.json`; a step `SpladePooling` in `modules.json` or
    /// in `router_config.json` gives weights of words; what PyLate, the class `HF_ColBERT` and the step `MultiVectorMask` describe gives
    /// a vector for each token; every other model gives vectors. A model id that is not in the cache is downloaded first, all files that
    /// a load needs.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for a configuration that cannot work, `InvalidModel` for a `config.json` that cannot
    /// be read, and the errors of a download.
    pub fn of(
        source: impl Into<ModelSource>,
        config: &EmbeddingConfig,
    ) -> BoxFuture<'static, Result<Self>> {
        let (source, config) = (source.into(), config.clone());
        Box::pin(async move {
            let config = config.build()?;
            let origin = source.to_string();
            let (source, _) = resolve(source, &config, &Watch::default()).await?.split();
            backend::offload("reading the model's config.json", async move {
                let mut small = BTreeMap::new();
                for name in DESCRIBING {
                    small.extend(
                        file(&source, &origin, name)?.map(|bytes| (name.to_owned(), bytes)),
                    );
                }
                let has = |class: &str| {
                    let modules = small.get("modules.json");
                    modules.is_some_and(|modules| has_step(modules, class))
                };
                let has_splade = has(SPLADE);
                let routes_to_splade = small
                    .get(ROUTER_CONFIG)
                    .is_some_and(|routes| routes_to_splade(routes));
                if has_splade || routes_to_splade {
                    return Ok(Self::Sparse);
                }
                if sentence_transformers::is_late(&small) {
                    return Ok(Self::MultiVector);
                }
                if has(LOGIT_SCORE) {
                    return Ok(Self::Rerank);
                }
                Ok(match small.get("config.json") {
                    Some(bytes) => Self::read(&origin, bytes)?,
                    None => Self::Embed,
                })
            })
            .await
        })
    }

    fn read(origin: &str, config_json: &[u8]) -> Result<Self> {
        let config: Config = serde_json::from_slice(config_json)
            .map_err(|error| EngineError::invalid_model(origin, format!("config.json: {error}")))?;
        let classes = &config.architectures;
        if !classes.iter().any(|class| class.ends_with(WITH_LABELS)) {
            return Ok(Self::Embed);
        }
        let named = config.id2label.map(|names| names.len());
        Ok(
            match named.or(config.num_labels).unwrap_or(DEFAULT_LABELS) {
                1 => Self::Rerank,
                _ => Self::Classify,
            },
        )
    }
}

/// Whether a `modules.json` has a step whose class ends so. The load says what is wrong with one that cannot be read.
fn has_step(modules: &[u8], class: &str) -> bool {
    let modules: serde_json::Value = serde_json::from_slice(modules).unwrap_or_default();
    let modules = modules.as_array().into_iter().flatten();
    let mut types = modules.filter_map(|module| module["type"].as_str());
    types.any(|name| name.ends_with(class))
}

/// Whether a way of a `router_config.json` has that step.
fn routes_to_splade(routes: &[u8]) -> bool {
    let routes = Routes::read(routes);
    routes.is_ok_and(|routes| routes.all().iter().any(|step| step.class.ends_with(SPLADE)))
}

/// The file where there is one. A model without any is an ONNX file that says nothing of a class.
fn file(source: &ModelSource, origin: &str, name: &str) -> Result<Option<Bytes>> {
    let read = match source {
        ModelSource::Folder(folder) => std::fs::read(folder.join(name)).map(Bytes::from),
        ModelSource::Files(files) => match files.get(name) {
            Some(path) => std::fs::read(path).map(Bytes::from),
            None => return Ok(None),
        },
        ModelSource::Contents { files, .. } => match files.get(name) {
            Some(content) => content.bytes(),
            None => return Ok(None),
        },
        ModelSource::Hub(_) => return Ok(None),
    };
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        // The load says what is missing, if anything is.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EngineError::invalid_model(origin, format!("{name}: {error}")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str) -> Result<ModelTask> {
        ModelTask::read("model", config.as_bytes())
    }

    #[test]
    fn the_class_and_its_labels_decide() {
        let labels =
            |more: &str| format!(r#"{{"architectures": ["BertForSequenceClassification"]{more}}}"#);
        for (config, task) in [
            (
                r#"{"architectures": ["BertModel"]}"#.to_owned(),
                ModelTask::Embed,
            ),
            ("{}".into(), ModelTask::Embed),
            (r#"{"id2label": {"0": "a"}}"#.into(), ModelTask::Embed),
            (labels(""), ModelTask::Classify),
            (labels(r#", "id2label": {"0": "a"}"#), ModelTask::Rerank),
            (labels(r#", "num_labels": 1"#), ModelTask::Rerank),
            (
                labels(r#", "id2label": {"0": "a", "1": "b"}, "num_labels": 1"#),
                ModelTask::Classify,
            ),
            (labels(r#", "num_labels": 3"#), ModelTask::Classify),
        ] {
            assert_eq!(of(&config).unwrap(), task, "{config}");
        }
        assert_eq!(of("[").unwrap_err().kind(), "InvalidModel");
    }

    #[test]
    fn files_are_looked_at_wherever_they_are() {
        let config = br#"{"architectures": ["XForSequenceClassification"], "num_labels": 1}"#;
        let bytes = ModelSource::bytes("m", [("config.json".to_owned(), config.to_vec().into())]);
        let of = |source: ModelSource| {
            pollster::block_on(ModelTask::of(source, &EmbeddingConfig::default()))
        };
        assert_eq!(of(bytes).unwrap(), ModelTask::Rerank);
        let none = ModelSource::bytes("m", [("model.onnx".to_owned(), Bytes::new())]);
        assert_eq!(of(none).unwrap(), ModelTask::Embed);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        assert_eq!(
            of(folder.join("tiny-bert").into()).unwrap(),
            ModelTask::Embed
        );
        assert_eq!(
            of(folder.join("tiny-classifier").into()).unwrap(),
            ModelTask::Classify
        );
        assert_eq!(
            of(folder.join("tiny-splade").into()).unwrap(),
            ModelTask::Sparse
        );
    }
}
