//! A model as engines take it: a small graph, its weights by name, and the files beside it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::onnx::proto::{ModelProto, StringStringEntryProto};
use crate::weights::{Weights, WeightsIdentity};

/// Initializers of at least this many bytes live in the [`WeightSource`](crate::weights::WeightSource);
/// smaller ones (shapes, axes, epsilons) stay in the graph, where shape inference sees them.
pub const WEIGHT_MIN_BYTES: usize = 1024;

/// The `metadata_props` key by which a model asks that products with weights of whole numbers round
/// their activations to 8 bits; [`EIGHT_BITS`] is its value.
pub const ACTIVATIONS_KEY: &str = "isovec.activations";

/// The value of [`ACTIVATIONS_KEY`]: 8 bits, with a scale for every 128 values of a row.
pub const EIGHT_BITS: &str = "8 bits by 128";

/// A model apart from any runtime. `isovec-model` reads one from a model's files.
#[derive(Debug, Clone)]
pub struct ModelBundle {
    /// The ONNX graph. Its large initializers are *not* in it: their names are in `weights`.
    pub graph: ModelProto,
    /// The large initializers.
    pub weights: Weights,
    /// The original weights' hash.
    pub identity: WeightsIdentity,
    /// Small files beside the model (`config.json`, `1_Pooling/config.json`), by
    /// their path inside the bundle, with `/` between folders.
    pub files: BTreeMap<String, Bytes>,
    /// The file that the graph was read from or made for, by its path inside the bundle:
    /// `onnx/model.onnx`, `model.safetensors`.
    pub model_file: String,
    /// Where it came from, for messages.
    pub origin: String,
}

impl ModelBundle {
    /// Whether products with weights of whole numbers are to round their activations to 8 bits.
    /// An engine that cannot takes more bits, and says so by
    /// [`Capabilities::precision`](crate::engine::Capabilities::precision).
    pub fn rounds_activations(&self) -> bool {
        let mut entries = self.graph.metadata_props.iter();
        entries.any(|entry| entry.key == ACTIVATIONS_KEY && entry.value == EIGHT_BITS)
    }

    /// The same model, which asks for that or does not.
    #[must_use]
    pub fn with_rounded_activations(mut self, rounded: bool) -> Self {
        let entries = &mut self.graph.metadata_props;
        entries.retain(|entry| entry.key != ACTIVATIONS_KEY);
        if rounded {
            entries.push(StringStringEntryProto {
                key: ACTIVATIONS_KEY.into(),
                value: EIGHT_BITS.into(),
            });
        }
        self
    }
}
