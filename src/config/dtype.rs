//! How weights are stored.

use std::fmt;

use isovec_engine::fingerprint::Precision;
use serde::{Deserialize, Serialize};

/// How a model's weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Dtype {
    /// The smallest published form of equal quality: `onnx/model_fp16.onnx` if it is smaller than the checkpoint,
    /// else the default. That file computes in 16 bits and is a model of its own: its vectors cannot be compared with
    /// the checkpoint's. Published files with quantised activations are never chosen. Nothing is made smaller at
    /// load.
    Auto,
    /// As published.
    F32,
    /// 16-bit floats: half the bytes. Engines compute with them in f32.
    F16,
    /// The upper halves of 32-bit floats: half the bytes and the same range, with fewer digits than `f16`. Checkpoints that are
    /// published in bfloat16 stay as they are, bit for bit. Engines compute with them in f32, and hold them so.
    Bf16,
    /// 8-bit integers with a scale for every output of a matrix: a quarter of the bytes. ONNX
    /// Runtime computes with them in f32, the portable engine in integers, against activations in
    /// 13 to 15 bits.
    Int8,
    /// The same bytes as `int8`, and activations rounded to 8 bits, with a scale for every 128 of them. Faster than
    /// `int8` on processors that multiply bytes (AVX-512 VNNI, AVX-VNNI, ARM's dot products), as fast elsewhere. The
    /// portable engine on the processor computes so, and is chosen where no engine is named; so does ONNX Runtime on
    /// processors that multiply bytes. Others compute as with `int8`, and `effective_config()` says so.
    #[serde(rename = "int8-fast")]
    Int8Fast,
}

impl Dtype {
    /// The requested form of the weights at load, if any.
    pub(crate) fn precision(self) -> Option<Precision> {
        match self {
            Self::Auto => None,
            Self::F32 => Some(Precision::F32),
            Self::F16 => Some(Precision::F16),
            Self::Bf16 => Some(Precision::Bf16),
            Self::Int8 => Some(Precision::Int8),
            Self::Int8Fast => Some(Precision::Int8Fast),
        }
    }
}

/// As the configuration writes it.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.precision() {
            None => f.write_str("auto"),
            Some(precision) => precision.fmt(f),
        }
    }
}
