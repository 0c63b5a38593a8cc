//! Rules about the provider that computes and the requested one.

use serde_json::Value;

use super::{BuiltIn, Part, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Difficulty, Impact, Suggestion};

pub(super) const FALLBACK: BuiltIn = rule("provider-fallback", &[Part::Stats], fallback);
pub(super) const SOFTWARE_GPU: BuiltIn = rule("software-gpu", &[Part::Stats], software);
pub(super) const SMALL_BATCHES_ON_GPU: BuiltIn = rule(
    "gpu-for-small-batches",
    &[Part::Effective, Part::Provider, Part::Stats],
    small_batches,
);
pub(super) const IO_BINDING: BuiltIn = rule(
    "io-binding-off",
    &[Part::Effective, Part::Provider],
    io_binding,
);

/// Tokens of a batch below which a processor is often faster than a GPU.
const FEW_TOKENS: f64 = 256.0;

fn fallback(context: &AnalysisContext) -> Option<Suggestion> {
    let provider = &context.stats.as_ref()?.engine.provider;
    let last = provider.fallbacks.last()?;
    let mut suggestion = Suggestion::new(
        "provider-fallback",
        Category::Provider,
        format!("Mend {}, or do without it: {} computes", last.from, last.to),
    )
    .with_impact(Impact::Critical)
    .with_difficulty(Difficulty::Hard)
    .expecting(
        format!("the speed of {}", last.from),
        "it was asked for and does not work, so that the slower one computes",
    );
    for event in &provider.fallbacks {
        suggestion = suggestion.because(
            "stats.provider.fallbacks",
            format!("{} gave way to {}: {}", event.from, event.to, event.cause),
        );
    }
    Some(
        suggestion
            .step("Check the cause: a missing library, an old driver, a lack of memory. `isovec features` lists the providers of this machine.")
            .step("Set providers.strict_providers, so that it can never happen unseen.")
            .step("Or leave the provider out of providers.execution_providers.")
            .with_example(
                "config = config.with_strict_providers(true);",
                "const embedder = await Embedder.load(model, { config: { providers: { strict_providers: true } } });",
            ),
    )
}

fn software(context: &AnalysisContext) -> Option<Suggestion> {
    let gpu = context.stats.as_ref()?.engine.gpu.as_ref()?;
    if !gpu.software {
        return None;
    }
    let suggestion = Suggestion::new(
        "software-gpu",
        Category::Provider,
        "Compute on the processor itself, and not on a GPU that it plays",
    )
    .because("stats.gpu.adapter", format!("{} ({}) is a processor", gpu.adapter, gpu.backend))
    .expecting_speedup(
        3.0,
        "shaders that a processor emulates lose the SIMD and the cache that kernels for processors have",
    );
    let patch = Patch::of([("providers.execution_providers", Value::Null)])
        .and("providers.webgpu", Value::Null);
    Some(suggestion.with_patch(patch))
}

fn small_batches(context: &AnalysisContext) -> Option<Suggestion> {
    let stats = context.stats.as_ref()?;
    let gpu = stats.engine.gpu.as_ref()?;
    let tokens = context.tokens_of_a_batch()?;
    let chosen = context.used("providers.provider_auto_selection") == Some(true);
    if gpu.software || chosen || stats.engine.provider.beside.is_some() || tokens >= FEW_TOKENS {
        return None;
    }
    let suggestion = Suggestion::new(
        "gpu-for-small-batches",
        Category::Provider,
        "Let the processor take the batches that are too small for the GPU",
    )
    .because("stats.tokens", format!("{tokens:.0} tokens a batch on average"))
    .because("stats.gpu.dispatches_per_run", format!("{} kernels are started for each", gpu.dispatches_per_run))
    .because("effective.providers.provider_auto_selection", "false")
    .expecting_speedup(
        1.5,
        "starting kernels and fetching results takes longer than a small batch takes on a processor; from which size on is measured once",
    );
    let patch = Patch::of([("providers.provider_auto_selection", true)]);
    Some(suggestion.with_patch(patch))
}

fn io_binding(context: &AnalysisContext) -> Option<Suggestion> {
    if context.asked("io.io_binding") != Some("false") || !context.on_onnxruntime() {
        return None;
    }
    let on_gpu = !context.on_processor();
    let copied = context
        .stats
        .as_ref()
        .map_or(0, |stats| stats.engine.io_binding.copied_bytes);
    let suggestion = Suggestion::new(
        "io-binding-off",
        Category::Provider,
        "Bind outputs before runs",
    )
    .because("effective.io.io_binding", "false")
    .because(
        "stats.io_binding.copied_bytes",
        format!("{copied} bytes were copied"),
    );
    let suggestion = if on_gpu {
        suggestion.expecting_speedup(
            1.3,
            "without it every output makes a way through host memory that the runtime waits for",
        )
    } else {
        suggestion.expecting(
            "a copy less for every output",
            "the runtime makes outputs of its own, and they are copied",
        )
    };
    Some(suggestion.with_patch(Patch::of([("io.io_binding", Value::Null)])))
}
