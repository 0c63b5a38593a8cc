//! Rules about batches.

use serde_json::Value;

use super::{BuiltIn, Part, percent, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Difficulty, Impact, Suggestion};

pub(super) const ONE_TEXT_BATCHES: BuiltIn = rule(
    "batches-of-one",
    &[Part::Effective, Part::Stats],
    batches_of_one,
);
pub(super) const ONE_TEXT_CALLS: BuiltIn = rule("calls-of-one", &[Part::Stats], calls_of_one);
pub(super) const OVER_BATCHING: BuiltIn = rule(
    "over-batching",
    &[Part::Effective, Part::Provider, Part::Stats],
    over_batching,
);
pub(super) const PADDING: BuiltIn = rule("padding-waste", &[Part::Effective, Part::Stats], padding);
pub(super) const REPEATED_TEXTS: BuiltIn = rule(
    "repeated-texts",
    &[Part::Effective, Part::Workload],
    repeated,
);

/// Bytes of vectors that are worth keeping: some 40,000 of 384 components.
const KEPT_BYTES: u64 = 64 << 20;
/// Calls from which an average says something.
const SOME_CALLS: u64 = 32;
/// Padding that is not worth a word.
const LITTLE_PADDING: f64 = 0.12;
/// Tokens of a batch on processors, where nothing else is configured.
const DEFAULT_TOKENS: usize = 256;
/// Tokens of a batch that a processor's cache holds the work of.
const CACHED_TOKENS: f64 = 1024.0;

fn batches_of_one(context: &AnalysisContext) -> Option<Suggestion> {
    let texts_of_a_call = context.texts_of_a_call()?;
    let texts_of_a_batch = context.texts_of_a_batch()?;
    if texts_of_a_call < 2.0 || texts_of_a_batch >= 1.5 {
        return None;
    }
    // Long texts fill a batch alone, and there is nothing to put together.
    let rows: usize = context.used("batching.max_batch_size")?;
    let tokens = context.max_batch_tokens()?;
    let of_a_text = context.tokens_of_a_batch()? / texts_of_a_batch;
    let held_back = rows == 1 || (tokens as f64) < 2.0 * of_a_text && of_a_text < 128.0;
    if !held_back || context.used("session.deterministic_compute") == Some(true) {
        return None;
    }
    let factor = if context.on_processor() { 1.35 } else { 4.0 };
    let suggestion = Suggestion::new(
        "batches-of-one",
        Category::Batching,
        "Run several texts in a batch",
    )
    .because("stats.calls", format!("{texts_of_a_call:.1} texts a call"))
    .because("stats.calls.batches", format!("{texts_of_a_batch:.1} texts a batch, of {of_a_text:.0} tokens each"))
    .because("effective.batching.max_batch_size", rows.to_string())
    .because("effective.batching.max_batch_tokens", tokens.to_string())
    .expecting_speedup(
        factor,
        "weights are read once for a batch and not once for every text, and a GPU is idle in small ones",
    );
    let patch = Patch::of([("batching.max_batch_size", Value::Null)])
        .and("batching.max_batch_tokens", Value::Null);
    Some(suggestion.with_patch(patch))
}

fn calls_of_one(context: &AnalysisContext) -> Option<Suggestion> {
    let stats = context.stats.as_ref()?;
    let texts = context.texts_of_a_call()?;
    let waited = stats.engine.sessions.peak_waiting;
    if stats.calls.embedded < SOME_CALLS || texts >= 1.5 || waited < 2 {
        return None;
    }
    let suggestion = Suggestion::new(
        "calls-of-one",
        Category::Batching,
        "Join the calls of many with a DynamicBatcher",
    )
    .with_difficulty(Difficulty::Medium)
    .because("stats.calls.embedded", format!("{} calls of {texts:.1} texts", stats.calls.embedded))
    .because("stats.sessions.peak_waiting", format!("{waited} callers waited at the same time"))
    .expecting_speedup(
        2.0,
        "64 callers with a text each were served 2.4 times as fast when joined, measured on two cores (benches/RESULTS.md)",
    )
    .step("Make a DynamicBatcher of the embedder once, and let every caller embed through it.")
    .with_example(
        "let batcher = isovec::DynamicBatcher::new(&embedder);\nlet vectors = batcher.embed([text]).await?;",
        "// In the npm package calls are joined already.\nconst vectors = await embedder.embed([text]);",
    );
    Some(suggestion)
}

fn over_batching(context: &AnalysisContext) -> Option<Suggestion> {
    let tokens = context.tokens_of_a_batch()?;
    let most = context.max_batch_tokens()?;
    if !context.on_processor() || tokens < CACHED_TOKENS || (most as f64) < CACHED_TOKENS {
        return None;
    }
    let sorted = context.used("io.batch_optimization").unwrap_or(true);
    if !sorted {
        // Nothing is cut by tokens then, and padding has its own rule.
        return None;
    }
    let suggestion = Suggestion::new(
        "over-batching",
        Category::Batching,
        "Run smaller batches on the processor",
    )
    .because("effective.batching.max_batch_tokens", most.to_string())
    .because("stats.tokens", format!("{tokens:.0} positions a batch on average"))
    .expecting_speedup(
        1.15,
        "small batches of texts of one length carry no padding, stay in the processor's cache and spread over runs; large ones take memory",
    );
    Some(suggestion.with_patch(Patch::of([("batching.max_batch_tokens", Value::Null)])))
}

fn padding(context: &AnalysisContext) -> Option<Suggestion> {
    let stats = context.stats.as_ref()?;
    let wasted = stats.tokens.padding_ratio();
    if wasted < LITTLE_PADDING {
        return None;
    }
    let suggestion = Suggestion::new(
        "padding-waste",
        Category::Batching,
        "Compute less padding",
    )
    .because(
        "stats.tokens",
        format!(
            "{} of {} positions were padding ({})",
            stats.tokens.padding,
            stats.tokens.padding + stats.tokens.real,
            percent(wasted)
        ),
    )
    .expecting_speedup(
        1.0 / (1.0 - wasted.min(0.9)),
        "padding is computed like text and thrown away; texts sorted by length and cut by tokens need next to none",
    );
    let sorted = context.used("io.batch_optimization").unwrap_or(true);
    if !sorted {
        let used = suggestion.because("effective.io.batch_optimization", "false");
        return Some(used.with_patch(Patch::of([("io.batch_optimization", Value::Null)])));
    }
    let most = context.max_batch_tokens()?;
    if most <= DEFAULT_TOKENS {
        // What is left is due to texts that have too few companions of their length.
        return None;
    }
    let used = suggestion.because("effective.batching.max_batch_tokens", most.to_string());
    Some(used.with_patch(Patch::of([("batching.max_batch_tokens", DEFAULT_TOKENS)])))
}

fn repeated(context: &AnalysisContext) -> Option<Suggestion> {
    let workload = context.workload.as_ref()?;
    let part = workload.repeated();
    if part < 0.1 || workload.texts < 20 || context.keeps_vectors() {
        return None;
    }
    let suggestion = Suggestion::new("repeated-texts", Category::Cache, "Embed equal texts once")
        .because(
            "workload",
            format!(
                "{} of {} texts are equal to an earlier one ({})",
                workload.texts - workload.distinct,
                workload.texts,
                percent(part)
            ),
        )
        .expecting_speedup(
            1.0 / (1.0 - part.min(0.9)),
            "a cached text is neither tokenised nor run",
        )
        .warning("Vectors take memory; for those of the next start there is embedding_cache.disk.");
    let impact = suggestion.impact.min(Impact::High);
    let patch = Patch::of([("embedding_cache.memory", KEPT_BYTES)]);
    Some(suggestion.with_impact(impact).with_patch(patch))
}
