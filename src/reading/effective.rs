//! What a reader makes of the configuration, which is that of all models.

use std::fmt::Display;
use std::time::Duration;

use super::network::Network;
use crate::config::EmbeddingConfig;
use crate::effective::{EffectiveConfig, note_runtime};
use crate::model::pooling_name;

/// Every knob: what engine and files make of it is what the detector's do.
pub(super) fn of(config: &EmbeddingConfig, detector: &Network, file: &str) -> EffectiveConfig {
    let mut effective = EffectiveConfig::default();
    note_runtime(&mut effective, config, detector.engines());
    detector.note(&mut effective, config);
    effective.note(
        "model.onnx_file",
        config.model.onnx_file.as_ref(),
        file,
        "the builder names a file for each network; this is the detector's",
    );
    effective.note_own(
        "memory.mmap",
        config.runtime.memory.mmap.as_ref(),
        config.runtime.memory.mmap.unwrap_or(true),
        "the default, for large files that the source has on disk",
    );
    let asked = config.model.verify;
    let why = "hashes are kept of checkpoints, and these are ONNX files";
    effective.note("model.verify", asked.as_ref(), true, why);
    note_unused(&mut effective, config);
    effective
}

/// The knobs that a reader has no use for.
fn note_unused(effective: &mut EffectiveConfig, config: &EmbeddingConfig) {
    let (text, batching) = (&config.text, &config.batching);
    let prompts: Vec<&str> = text.prompts.keys().map(String::as_str).collect();
    let of_texts = [
        ("text.max_length", shown(text.max_length)),
        ("text.truncation", shown(text.truncation)),
        ("text.pooling", text.pooling.map(pooling_name)),
        ("text.normalize", shown(text.normalize)),
        ("text.dimension", shown(text.dimension)),
        (
            "text.prompts",
            (!prompts.is_empty()).then(|| prompts.join(", ")),
        ),
        ("text.query_prompt", text.query_prompt.clone()),
        ("text.passage_prompt", text.passage_prompt.clone()),
    ];
    let of_batches = [
        (
            "io.batch_optimization",
            shown(config.runtime.io.batch_optimization),
        ),
        ("batching.max_batch_size", shown(batching.max_batch_size)),
        (
            "batching.max_batch_tokens",
            shown(batching.max_batch_tokens),
        ),
        (
            "batching.dynamic_batching",
            shown(batching.dynamic_batching),
        ),
        ("batching.min_batch_size", shown(batching.min_batch_size)),
        (
            "batching.preferred_batch_size",
            shown(batching.preferred_batch_size),
        ),
        ("batching.max_wait", duration(batching.max_wait)),
        ("batching.target_latency", duration(batching.target_latency)),
        (
            "batching.throughput_optimization",
            shown(batching.throughput_optimization),
        ),
        ("batching.max_queue", shown(batching.max_queue)),
        (
            "batching.max_queue_tokens",
            shown(batching.max_queue_tokens),
        ),
    ];
    let cache = &config.embedding_cache;
    let folder = cache.folder.as_ref().map(|path| path.display());
    let of_vectors = [
        ("embedding_cache.memory", shown(cache.memory)),
        ("embedding_cache.disk", shown(cache.disk)),
        ("embedding_cache.folder", shown(folder)),
    ];
    let of_memory = [(
        "memory.memory_limit",
        shown(config.runtime.memory.memory_limit),
    )];
    let groups = [
        (&of_texts[..], "the networks read pictures"),
        (&of_batches, "pictures are read one after another"),
        (&of_vectors, "there are no vectors"),
        (
            &of_memory,
            "it holds for each network's weights alone: what a picture takes is not predicted",
        ),
    ];
    for (knobs, why) in groups {
        for (name, asked) in knobs {
            effective.note_unused(name, asked.as_ref(), why);
        }
    }
}

fn shown<T: Display>(asked: Option<T>) -> Option<String> {
    asked.map(|asked| asked.to_string())
}

fn duration(asked: Option<Duration>) -> Option<String> {
    shown(asked.map(humantime::format_duration))
}
