//! Changes without evidence that may help all the same: neighbouring values of the knobs that matter most for speed.

use serde_json::Value;

use super::context::AnalysisContext;
use super::patch::Patch;
use super::suggestion::{Category, Suggestion};
use super::trial::Goal;

/// Tokens of a batch, at least and at most.
const TOKENS: std::ops::RangeInclusive<usize> = 64..=65_536;

/// What to try beside what the rules say, those first that most often help.
pub(super) fn experiments(context: &AnalysisContext, goal: Goal) -> Vec<Suggestion> {
    let mut all = Vec::new();
    if context.on_processor() {
        all.extend(threads(context));
    }
    if goal == Goal::Throughput {
        all.extend(batches(context));
    }
    all.extend(engines(context));
    all
}

fn experiment(id: &str, category: Category, title: String, patch: Patch) -> Suggestion {
    Suggestion::new(id, category, title)
        .expecting(
            "nobody knows",
            "no rule speaks for it; it is tried because it decides the speed on some machines",
        )
        .with_patch(patch)
}

fn threads(context: &AnalysisContext) -> Vec<Suggestion> {
    let Some(cores) = context.cores() else {
        return Vec::new();
    };
    let layouts = match context.in_page() {
        true => vec![(cores, 1), (cores / 2, 1), (1, 1)],
        false => vec![(1, cores), (cores, 1), (cores / 2, 2)],
    };
    let layouts = layouts.into_iter().filter(|&(threads, _)| threads > 0);
    layouts
        .map(|(threads, runs)| {
            let patch = Patch::of([("session.intra_op_threads", threads)]);
            let patch = match context.in_page() {
                true => patch.and("session.pool_size", Value::Null),
                false => patch.and("session.pool_size", runs),
            };
            let title = format!("{runs} runs at the same time, {threads} threads each");
            experiment("try-threads", Category::Threads, title, patch)
        })
        .collect()
}

fn batches(context: &AnalysisContext) -> Vec<Suggestion> {
    let Some(tokens) = context.max_batch_tokens() else {
        return Vec::new();
    };
    [tokens.saturating_mul(2), tokens / 2]
        .into_iter()
        .filter(|tokens| TOKENS.contains(tokens))
        .map(|tokens| {
            experiment(
                "try-batch-tokens",
                Category::Batching,
                format!("batches of {tokens} tokens"),
                Patch::of([("batching.max_batch_tokens", tokens)]),
            )
        })
        .collect()
}

/// The other engine, where nobody asked for this one's provider.
fn engines(context: &AnalysisContext) -> Vec<Suggestion> {
    if !context.on_processor() {
        return Vec::new();
    }
    let (engine, title) = match context.on_onnxruntime() {
        true => ("portable", "the portable engine"),
        false => ("onnxruntime", "ONNX Runtime"),
    };
    vec![experiment(
        "try-engine",
        Category::Provider,
        title.to_owned(),
        Patch::of([("engine", engine)]),
    )]
}
