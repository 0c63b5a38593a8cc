//! What was done to a model, in its own metadata: the identity of the original, and every step.

use isovec_engine::bundle::ModelBundle;
use isovec_engine::onnx::proto::{ModelProto, StringStringEntryProto};
use serde::{Deserialize, Serialize};

/// The `metadata_props` key under which an optimised model has its [`History`], as JSON.
pub const HISTORY_KEY: &str = "isovec.optimized";

/// Where an optimised model comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The identity of the original's weights, as its fingerprint has it.
    pub original: String,
    /// What was done, in this order.
    pub steps: Vec<String>,
}

/// The history that a model states.
pub fn history(graph: &ModelProto) -> Option<History> {
    let entry = graph
        .metadata_props
        .iter()
        .find(|entry| entry.key == HISTORY_KEY)?;
    serde_json::from_str(&entry.value).ok()
}

/// The history of a model with another step. `original` is the identity of the model that the graph is of; it counts where no
/// step was before.
pub fn continued(graph: &ModelProto, original: &str, step: String) -> History {
    let mut told = history(graph).unwrap_or_else(|| History {
        original: original.to_owned(),
        steps: Vec::new(),
    });
    told.steps.push(step);
    told
}

/// Writes a step into a model's metadata. `made` still has the metadata of the model that it was made of.
pub(crate) fn noted(mut made: ModelBundle, original: &str, step: String) -> ModelBundle {
    let told = continued(&made.graph, original, step);
    let entries = &mut made.graph.metadata_props;
    entries.retain(|entry| entry.key != HISTORY_KEY);
    // Text and lists of text can always be written as JSON.
    let value = serde_json::to_string(&told).unwrap_or_default();
    entries.push(StringStringEntryProto {
        key: HISTORY_KEY.into(),
        value,
    });
    made
}
