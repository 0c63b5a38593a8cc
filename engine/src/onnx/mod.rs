//! ONNX graphs in the contract: the messages of the format, and functions that all readers of a graph need.

mod attributes;
mod dtype;
pub mod proto;
mod tensor_proto;

pub use attributes::axis;
use prost::Message;

/// A hash of a graph as it is: its operators, their attributes, the names and shapes of its values.
pub fn graph_identity(graph: &proto::ModelProto) -> String {
    blake3::hash(&graph.encode_to_vec()).to_hex().to_string()
}

/// The default operator set has two spellings.
pub fn default_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}
