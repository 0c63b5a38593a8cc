//! Knobs that are gone.

use std::fmt::Display;

const ONE_AFTER_ANOTHER: &str = "the operators of an encoder wait for each other; use session.intra_op_threads and session.pool_size";

/// A knob's path, and why it is gone and what to use instead.
const REMOVED: [(&str, &str); 4] = [
    ("session.parallel_execution", ONE_AFTER_ANOTHER),
    ("session.inter_op_threads", ONE_AFTER_ANOTHER),
    (
        "session.memory_pattern",
        "it is on where a model's shapes are fixed, and off where they vary; leave it out",
    ),
    (
        "io.cuda_memory_streams",
        "CUDA copies on the stream that computes, because ONNX Runtime warns of data races otherwise; leave it out",
    ),
];

/// What to say instead of serde's message where that is about a knob that is gone.
pub(super) fn instead(message: &impl Display) -> Option<String> {
    let message = message.to_string();
    let (path, hint) = REMOVED.iter().find(|(path, _)| {
        let name = path.rsplit('.').next().unwrap_or(path);
        message.contains(&format!("unknown field `{name}`"))
    })?;
    Some(format!("there is no knob {path} any more: {hint}"))
}
