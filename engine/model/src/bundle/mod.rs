//! Makes a bundle of a model's files, and examines and changes its graph.

mod files;
mod load;
mod mapped;
mod prune;
#[cfg(unix)]
mod remembered;
#[cfg(not(unix))]
#[path = "hashed.rs"]
mod remembered;
mod rows;
mod told;

pub use isovec_hub::choice::{
    CHAT_TEMPLATE, DOCUMENT, LOGIT_SCORE, QUERY, ROUTER, ROUTER_CONFIG, RouteStep, Routes,
    SPARSE_STATIC,
};
pub use load::{
    from_bytes, from_contents, from_contents_within, from_files, from_files_within, from_folder,
    from_folder_within,
};
pub use prune::prune;
pub use rows::{RowMixer, row_mixer};
pub use told::next_told;

use std::path::PathBuf;

use crate::convert::Half;

/// How a bundle is put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleOptions {
    /// The ONNX file to use, by its path inside the bundle (`onnx/model_quantized.onnx`). `None`:
    /// a checkpoint that can be converted, else `model.onnx`, else `onnx/model.onnx`.
    pub onnx_file: Option<String>,
    /// Where no file is named: [`HALF_ONNX_FILE`](isovec_hub::choice::HALF_ONNX_FILE), if it is smaller than the checkpoint.
    pub smallest: bool,
    /// Read large files into memory instead of mapping them: for file systems whose files change
    /// or go away while a model is in use.
    pub read_into_memory: bool,
    /// A folder where hashes of checkpoints are kept, so that the same files are not hashed at every load. `None`: they are, and
    /// so they are on systems other than Unix.
    pub identities: Option<PathBuf>,
    /// Which half of a checkpoint that has two is converted.
    pub half: Half,
    /// Whether the layers that score the words of the vocabulary are converted too. They are not where `sparse_linear.pt` weighs
    /// tokens instead.
    pub vocabulary: bool,
}
