//! The model's graph, and what its operators take.

use isovec_engine::profile::Stage;
use serde_json::Value;

use super::{BuiltIn, Part, percent, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Difficulty, Impact, Suggestion, VectorChange};

pub(super) const ATTENTION: BuiltIn = rule(
    "attention-cost",
    &[Part::Profile, Part::Stats, Part::Effective],
    attention,
);
pub(super) const UNFUSED: BuiltIn = rule(
    "unfused-operators",
    &[Part::Effective, Part::Provider],
    unfused,
);
pub(super) const FLASH: BuiltIn = rule(
    "flash-attention",
    &[Part::Provider, Part::Model, Part::Stats],
    flash,
);
pub(super) const RUNTIME_PROFILE: BuiltIn =
    rule("runtime-profile-on", &[Part::Effective], runtime_profile);

/// The part of the operators' time from which attention is worth a word.
const MUCH_ATTENTION: f64 = 0.3;
/// Tokens of a text below which attention is not the length's fault.
const LONG: f64 = 192.0;
/// Seconds that a small operator takes at the most.
const SMALL: f64 = 30e-6;
/// The part of the operators' time from which small ones are worth a word.
const MUCH_SMALL: f64 = 0.25;

fn is_attention(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("attention") || name == "softmax"
}

fn attention(context: &AnalysisContext) -> Option<Suggestion> {
    let profile = context.profile.as_ref()?;
    let all = profile.stage(Stage::Operator).seconds;
    let own = profile.of_operators(is_attention).seconds;
    let tokens = context.stats.as_ref()?.tokens.real as f64;
    let texts = context.stats.as_ref()?.calls.texts.max(1) as f64;
    let of_a_text = tokens / texts;
    if all <= 0.0 || own / all < MUCH_ATTENTION || of_a_text < LONG {
        return None;
    }
    let part = own / all;
    // Halving the length halves what attention costs for each token.
    let gain = 1.0 / (1.0 - part / 2.0);
    let suggestion = Suggestion::new(
        "attention-cost",
        Category::Graph,
        "Cut long texts into chunks: attention grows with the square of the length",
    )
    .with_difficulty(Difficulty::Medium)
    .because("profile.operators", format!("attention takes {} of the operators' time", percent(part)))
    .because("stats.tokens", format!("{of_a_text:.0} tokens a text on average"))
    .because("effective.text.max_length", context.used::<String>("text.max_length").unwrap_or_default())
    .expecting_speedup(
        gain,
        "for texts of half the length attention costs half as much a token, and search over chunks finds more in long texts",
    )
    .step("Embed chunks of 128 to 256 tokens, and search those; or set text.max_length, if the start of a text is enough.")
    .with_example(
        "let chunks = embedder.embed_chunks(texts, ChunkOptions::default().with_max_tokens(128)).await?;",
        "const embedder = await Embedder.load(model, { config: { text: { max_length: 128 } } });",
    )
    .changing(VectorChange::Identity)
    .warning("Another text.max_length, or chunks, change vectors: embed all earlier texts again.");
    Some(suggestion)
}

fn unfused(context: &AnalysisContext) -> Option<Suggestion> {
    let level: u8 = context.used("session.graph_optimization_level")?;
    if !context.on_onnxruntime() || level >= 2 {
        return by_profile(context);
    }
    let mut suggestion = Suggestion::new(
        "unfused-operators",
        Category::Graph,
        "Let ONNX Runtime fuse small operators",
    )
    .because(
        "effective.session.graph_optimization_level",
        format!("{level}, where 2 fuses and 3 lays data out"),
    )
    .expecting_speedup(
        1.45,
        "operators that are not fused each write their result to memory and read it again",
    );
    let operators = context
        .profile
        .as_ref()
        .map(|profile| (profile, profile.stage(Stage::Operator)));
    if let Some((profile, operators)) = operators.filter(|(_, all)| all.count > 0) {
        let runs = profile.stage(Stage::Run).count.max(1);
        suggestion = suggestion.because(
            "profile.operators",
            format!(
                "{:.0} operators a run, {:.0} µs each on average",
                operators.count as f64 / runs as f64,
                operators.mean() * 1e6
            ),
        );
    }
    Some(suggestion.with_patch(Patch::of([(
        "session.graph_optimization_level",
        Value::Null,
    )])))
}

/// Small operators that are left though everything is fused that can be.
fn by_profile(context: &AnalysisContext) -> Option<Suggestion> {
    let profile = context.profile.as_ref()?;
    let all = profile.stage(Stage::Operator);
    let small = profile
        .operators
        .values()
        .filter(|times| times.mean() < SMALL)
        .fold((0, 0.0), |(count, seconds), times| {
            (count + times.count, seconds + times.seconds)
        });
    let runs = profile.stage(Stage::Run).count.max(1);
    let of_a_run = small.0 / runs;
    // Where texts are short, everything is small.
    let (count, part) = (of_a_run, small.1 / all.seconds.max(1e-9));
    if !context.on_onnxruntime() || part < MUCH_SMALL || count < 100 || part > 0.9 {
        return None;
    }
    let suggestion = Suggestion::new(
        "unfused-operators",
        Category::Graph,
        "Let the portable engine run this model, or export its graph fused",
    )
    .with_difficulty(Difficulty::Medium)
    .because("profile.operators", format!("{count} operators a run take under 30 µs each, {} of the time", percent(part)))
    .expecting_speedup(
        1.0 / (1.0 - part / 2.0),
        "operators that are not fused each write their result to memory and read it again; the portable engine recognises what operators compute, and does not depend on the exporter's pattern",
    );
    Some(suggestion.with_patch(Patch::of([("engine", "portable")])))
}

fn flash(context: &AnalysisContext) -> Option<Suggestion> {
    let tokens = &context.stats.as_ref()?.tokens;
    let texts = context.stats.as_ref()?.calls.texts.max(1);
    let of_a_text = tokens.real / texts;
    let operators = &context.model.as_ref()?.operators;
    let is_fused = operators.keys().any(|name| name.contains("Attention"));
    if context.on_processor() || !context.on_onnxruntime() || is_fused || of_a_text < 128 {
        return None;
    }
    let suggestion = Suggestion::new(
        "flash-attention",
        Category::Graph,
        "Use attention that never writes its scores to memory",
    )
    .with_difficulty(Difficulty::Hard)
    .because("model.operators", "no fused attention: Softmax and MatMul are separate operators")
    .because("stats.tokens", format!("{of_a_text} tokens a text on average"))
    .expecting_speedup(
        1.3,
        "the scores of all pairs of tokens are written to the GPU's memory and read again for every head",
    )
    .step("Optimise the ONNX file with onnxruntime.transformers.optimizer, which fuses attention, and load that.")
    .step("Or take isovec's own GPU path, whose attention is fused for every model: providers.execution_providers = [\"webgpu\"].")
    .with_example(
        "config = config.with_execution_providers([ExecutionProvider::WebGpu]);",
        "const embedder = await Embedder.load(model, { config: { providers: { execution_providers: [\"webgpu\"] } } });",
    );
    Some(suggestion)
}

fn runtime_profile(context: &AnalysisContext) -> Option<Suggestion> {
    let path = context.asked("session.profiling")?;
    let knob = context.effective.as_ref()?.get("session.profiling")?;
    // For a look at the operators it is switched on, by others than the configuration.
    let in_config = match &context.config {
        Some(config) => config.runtime.session.profiling.is_some(),
        None => context.profile.is_none(),
    };
    if !knob.honoured || !in_config {
        return None;
    }
    let suggestion = Suggestion::new(
        "runtime-profile-on",
        Category::Graph,
        "Switch ONNX Runtime's own profile off",
    )
    .because("effective.session.profiling", path)
    .expecting(
        "some percent",
        "every operator of every run is written to a file, which grows as long as the program runs",
    )
    .with_impact(Impact::Low);
    Some(suggestion.with_patch(Patch::of([("session.profiling", Value::Null)])))
}
