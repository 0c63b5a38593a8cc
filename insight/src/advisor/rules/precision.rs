//! Smaller weights, and arithmetic in fewer bits.

use super::{BuiltIn, Part, megabytes, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Impact, Suggestion, VectorChange};

pub(super) const SMALLER_WEIGHTS: BuiltIn = rule(
    "smaller-weights",
    &[Part::Effective, Part::Model, Part::Provider, Part::Hardware],
    smaller_weights,
);
pub(super) const MIXED_ON_GPU: BuiltIn = rule(
    "mixed-precision",
    &[Part::Effective, Part::Provider],
    mixed_on_gpu,
);

/// Weights from which a model is a large one.
const LARGE: u64 = 400 << 20;
/// The part of what is free that weights may take before they are large for the machine.
const LARGE_PART: f64 = 0.25;

fn smaller_weights(context: &AnalysisContext) -> Option<Suggestion> {
    let bytes = context.model.as_ref()?.weights_bytes;
    let stored: String = context.used("model.dtype")?;
    let free = context.free_memory().map(|(free, _)| free);
    let is_large =
        bytes >= LARGE || free.is_some_and(|free| bytes as f64 >= LARGE_PART * free as f64);
    if stored != "f32" || !is_large {
        return None;
    }
    // ONNX Runtime computes with 8-bit weights in f32; the portable engine in integers.
    let (dtype, part) = match context.on_onnxruntime() {
        true => ("f16", 2),
        false => ("int8", 4),
    };
    let saved = bytes - bytes / part;
    let suggestion = Suggestion::new(
        "smaller-weights",
        Category::Precision,
        format!("Store the weights as {dtype}"),
    )
    .because("effective.model.dtype", stored)
    .because("model.weights_bytes", megabytes(bytes))
    .expecting(
        format!("about {} less memory", megabytes(saved)),
        "large models are bound by the memory that their weights are read from",
    )
    .with_impact(Impact::Medium)
    .changing(VectorChange::Precision)
    .warning("docs/parity.md states how much the vectors of a smaller form differ; test it on your own texts.");
    let suggestion = match free {
        Some(free) => {
            suggestion.because("hardware.memory", format!("{} are free", megabytes(free)))
        }
        None => suggestion,
    };
    Some(suggestion.with_patch(Patch::of([("model.dtype", dtype)])))
}

fn mixed_on_gpu(context: &AnalysisContext) -> Option<Suggestion> {
    let provider = context.provider.as_ref()?.provider.to_ascii_lowercase();
    let (knob, bits) = if provider.contains("tensorrt") {
        ("providers.tensorrt.fp16", "16-bit floats")
    } else if provider.contains("cuda") {
        ("providers.cuda.tf32", "TensorFloat-32")
    } else if context.gpu_computes_f16() {
        ("providers.webgpu.f16", "16-bit floats")
    } else {
        return None;
    };
    let used: String = context.used(knob)?;
    if used == "true" {
        return None;
    }
    let suggestion = Suggestion::new(
        "mixed-precision",
        Category::Precision,
        format!("Multiply in {bits} on the GPU"),
    )
    .because("provider", provider)
    .because(format!("effective.{knob}"), used)
    .expecting_speedup(
        1.5,
        "matrix units of GPUs are several times as fast in fewer bits; sums are still taken in 32",
    )
    .changing(VectorChange::Precision)
    .warning("GPUs without such units gain nothing; docs/parity.md states how far vectors move.");
    Some(suggestion.with_patch(Patch::of([(knob, true)])))
}
