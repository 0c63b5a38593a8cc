//! Reading, writing and building ONNX graphs.

pub mod builder;
mod check;
pub mod proto;
pub(crate) mod read;
mod shorten;
mod skim;
mod tensor;
mod write;

use prost::Message;

pub use builder::GraphBuilder;
pub use check::default_domain;
pub use read::read_model;
pub use write::{Staged, export, stage, write_model};

/// A hash of a graph as it is: its operators, their attributes, the names and shapes of its values.
pub fn graph_identity(graph: &proto::ModelProto) -> String {
    blake3::hash(&graph.encode_to_vec()).to_hex().to_string()
}

/// The `metadata_props` key under which a written model carries the hash of its original weights.
pub const IDENTITY_KEY: &str = "isovec.weights_identity";

/// The `metadata_props` key under which a written model carries the hash of the tensors in it, so
/// that damage is found when it is read.
pub const TENSORS_KEY: &str = "isovec.tensors_blake3";
