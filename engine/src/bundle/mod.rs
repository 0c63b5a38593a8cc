//! A model as engines take it: a small graph, its weights by name, and the files beside it.

mod files;
mod load;
mod mapped;
mod prune;
mod rows;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::onnx::proto::ModelProto;
use crate::weights::{Weights, WeightsIdentity};

pub use rows::RowMixer;

/// Initializers of at least this many bytes live in the [`WeightSource`](crate::weights::WeightSource);
/// smaller ones (shapes, axes, epsilons) stay in the graph, where shape inference sees them.
pub const WEIGHT_MIN_BYTES: usize = 1024;

/// The name under which exporters publish a model in 16-bit floats. (`model_quantized.onnx`,
/// `model_int8.onnx` and others like them are not looked for: by the same custom their activations
/// are quantised as well, which costs a model its meaning. Measured with all-MiniLM-L6-v2: a cosine
/// of 0.861 for the worst text, where 16-bit floats have 0.99999.)
pub const HALF_ONNX_FILE: &str = "onnx/model_fp16.onnx";

/// How a bundle is put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleOptions {
    /// The ONNX file to use, by its path inside the bundle (`onnx/model_quantized.onnx`). `None`:
    /// a checkpoint that can be converted, else `model.onnx`, else `onnx/model.onnx`.
    pub onnx_file: Option<String>,
    /// Where no file is named: [`HALF_ONNX_FILE`], if it is smaller than the checkpoint.
    pub smallest: bool,
    /// Read large files into memory instead of mapping them: for file systems whose files change
    /// or go away while a model is in use.
    pub read_into_memory: bool,
}

/// A model apart from any runtime. Made by [`from_folder`](Self::from_folder),
/// [`from_files`](Self::from_files) and [`from_bytes`](Self::from_bytes).
#[derive(Debug, Clone)]
pub struct ModelBundle {
    /// The ONNX graph. Its large initializers are *not* in it: their names are in `weights`.
    pub graph: ModelProto,
    /// The large initializers.
    pub weights: Weights,
    /// The original weights' hash.
    pub identity: WeightsIdentity,
    /// Small files beside the model (`tokenizer.json`, `config.json`, `1_Pooling/config.json`), by
    /// their path inside the bundle, with `/` between folders.
    pub files: BTreeMap<String, Bytes>,
    /// The file that the graph was read from or made for, by its path inside the bundle:
    /// `onnx/model.onnx`, `model.safetensors`.
    pub model_file: String,
    /// Where it came from, for messages.
    pub origin: String,
}
