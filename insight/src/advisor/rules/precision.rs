//! Smaller weights, and arithmetic in fewer bits.

use super::{BuiltIn, Part, megabytes, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::remade::{Recipe, Scales};
use crate::advisor::suggestion::{Category, Difficulty, Impact, Suggestion, VectorChange};

pub(super) const SMALLER_WEIGHTS: BuiltIn = rule(
    "smaller-weights",
    &[Part::Effective, Part::Model, Part::Provider, Part::Hardware],
    smaller_weights,
);
pub(super) const PRODUCTS_IN_INT8: BuiltIn = rule(
    "products-in-int8",
    &[
        Part::Effective,
        Part::Provider,
        Part::Model,
        Part::Hardware,
        Part::Stats,
    ],
    products_in_int8,
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

/// Instructions that multiply and add bytes, by Rust's names for them.
const BYTE_PRODUCTS: [&str; 3] = ["avx512vnni", "avxvnni", "i8mm"];
/// Products of a graph from which it is a network of them.
const MANY_PRODUCTS: usize = 12;

/// Tokens from which a model of one's own is worth the work, and an index that is made again. Fewer are enough where a trial says
/// what it brings.
const MANY_TOKENS: u64 = 1_000_000;

/// ONNX Runtime computes in f32 what it could multiply in bytes.
fn products_in_int8(context: &AnalysisContext) -> Option<Suggestion> {
    let stored: String = context.used("model.dtype")?;
    let operators = &context.model.as_ref()?.operators;
    let count = |name: &str| operators.get(name).copied().unwrap_or(0);
    let products = count("MatMul") + count("Gemm");
    let quantised = operators.keys().any(|name| {
        let name = name.to_ascii_lowercase();
        ["quantize", "integer", "nbits", "bitshift"]
            .iter()
            .any(|part| name.contains(part))
    });
    let simd = &context.hardware.as_ref()?.cpu.simd;
    let by = simd
        .iter()
        .find(|name| BYTE_PRODUCTS.contains(&name.as_str()))?;
    let could = context.on_onnxruntime() && context.on_processor() && stored == "f32";
    let tokens = context.stats.as_ref()?.tokens.real;
    let worth_it = tokens >= MANY_TOKENS || context.trials;
    if !could || quantised || products < MANY_PRODUCTS || !worth_it {
        return None;
    }
    let suggestion = Suggestion::new(
        "products-in-int8",
        Category::Precision,
        "Make the model's products of whole numbers of 8 bits",
    )
    .with_difficulty(Difficulty::Medium)
    .because("effective.model.dtype", stored)
    .because("model.operators", format!("{products} products of f32"))
    .because("hardware.cpu.simd", by)
    .because("stats.tokens", format!("{tokens} tokens"))
    .expecting_speedup(
        2.0,
        "this processor multiplies bytes several times as fast as f32, and ONNX Runtime does where the model's file says so",
    )
    // Other vectors, and some are worse: what costs none of them comes first.
    .with_impact(Impact::Medium)
    .step(
        "isovec optimize MODEL --int8 static --engine onnxruntime --texts FILE --out FOLDER, with texts like those that you embed. Its \
         report compares the vectors and times both models.",
    )
    .step("Load the folder instead of the model, and embed all earlier texts again.")
    .with_example(
        "let options = OptimizeOptions::default().with_int8(Activations::Static).with_texts(texts);\n\
         let report = isovec::optimize(model, folder, config, options).await?;",
        "",
    )
    .changing(VectorChange::Identity)
    .with_recipe(Recipe::int8(Scales::Static))
    .warning("all-MiniLM-L6-v2 keeps a cosine of 0.994 for the worst text; other models may lose more: the report says it.");
    Some(suggestion)
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
