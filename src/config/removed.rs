//! Knobs that are gone.

use std::fmt::Display;

/// A knob's name, its path, and why it is gone and what to use instead.
const REMOVED: [(&str, &str, &str); 4] = [
    (
        "parallel_execution",
        "session.parallel_execution",
        "the operators of an encoder wait for each other; use session.intra_op_threads and session.pool_size",
    ),
    (
        "inter_op_threads",
        "session.inter_op_threads",
        "the operators of an encoder wait for each other; use session.intra_op_threads and session.pool_size",
    ),
    (
        "memory_pattern",
        "session.memory_pattern",
        "it is on where a model's shapes are fixed, and off where they vary; leave it out",
    ),
    (
        "cuda_memory_streams",
        "io.cuda_memory_streams",
        "CUDA copies on the stream that computes, because ONNX Runtime warns of data races otherwise; leave it out",
    ),
];

/// What to say instead of serde's message where that is about a knob that is gone.
pub(super) fn instead(message: &impl Display) -> Option<String> {
    let message = message.to_string();
    let (_, path, hint) = REMOVED
        .iter()
        .find(|(name, ..)| message.contains(&format!("unknown field `{name}`")))?;
    Some(format!("there is no knob {path} any more: {hint}"))
}
