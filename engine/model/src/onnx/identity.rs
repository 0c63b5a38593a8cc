//! Reads and writes the identity of the model that a file states.

use isovec_engine::onnx::proto::ModelProto;

/// Where a model's file claims another identity than that of the tensors in it: the hash of those, which was compared with
/// them when the file was read. Nothing in the file proves the claim.
pub fn claims_identity(graph: &ModelProto) -> Option<&str> {
    let entry = |key: &str| {
        let mut entries = graph.metadata_props.iter().filter(|entry| entry.key == key);
        entries.next().map(|entry| entry.value.as_str())
    };
    let (claimed, own) = (entry(IDENTITY_KEY)?, entry(TENSORS_KEY)?);
    (!claimed.eq_ignore_ascii_case(own)).then_some(own)
}

/// Copies the identity that another graph states, for a file that was made from it.
pub fn carry_identity(from: &ModelProto, to: &mut ModelProto) {
    let says = |key: &str| key == IDENTITY_KEY || key == TENSORS_KEY;
    to.metadata_props.retain(|entry| !says(&entry.key));
    let entries = from.metadata_props.iter().filter(|entry| says(&entry.key));
    to.metadata_props.extend(entries.cloned());
}

/// The `metadata_props` key under which a written model carries the hash of its original weights.
pub const IDENTITY_KEY: &str = "isovec.weights_identity";

/// The `metadata_props` key under which a written model carries the hash of the tensors in it, so
/// that damage is found when it is read.
pub const TENSORS_KEY: &str = "isovec.tensors_blake3";
