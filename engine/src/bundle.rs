//! A model as engines take it: a small graph, its weights by name, and the files beside it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::onnx::proto::ModelProto;
use crate::weights::{Weights, WeightsIdentity};

/// Initializers of at least this many bytes live in the [`WeightSource`](crate::weights::WeightSource);
/// smaller ones (shapes, axes, epsilons) stay in the graph, where shape inference sees them.
pub const WEIGHT_MIN_BYTES: usize = 1024;

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
