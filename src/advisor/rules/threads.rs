//! Threads: too few, too many, or held back.

use serde_json::Value;

use super::{BuiltIn, Part, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Suggestion};

pub(super) const DETERMINISTIC: BuiltIn = rule(
    "deterministic-compute",
    &[Part::Effective, Part::Provider],
    deterministic,
);
pub(super) const IDLE: BuiltIn = rule(
    "idle-cores",
    &[
        Part::Effective,
        Part::Capabilities,
        Part::Provider,
        Part::Hardware,
        Part::Stats,
    ],
    idle,
);
pub(super) const OVERSUBSCRIBED: BuiltIn = rule(
    "threads-oversubscribed",
    &[
        Part::Effective,
        Part::Capabilities,
        Part::Provider,
        Part::Hardware,
        Part::Stats,
    ],
    oversubscribed,
);
pub(super) const PARALLEL_OPERATORS: BuiltIn =
    rule("parallel-operators", &[Part::Effective], parallel);

/// Texts of a call from which there is enough to do for several runs.
const MANY_TEXTS: f64 = 8.0;

/// Threads that computing takes at the most: of one operator, times runs.
fn at_work(context: &AnalysisContext) -> Option<(usize, usize)> {
    let capabilities = context.capabilities.as_ref()?;
    Some((capabilities.intra_op_threads, capabilities.concurrent_runs))
}

/// The threads that suit the machine: a run for each core where there is much to do at once, else
/// all cores in one run.
fn suited(context: &AnalysisContext, cores: usize) -> Patch {
    let bulk = context.texts_of_a_call() >= Some(MANY_TEXTS);
    if bulk && !context.in_page() {
        Patch::of([("session.pool_size", cores)]).and("session.intra_op_threads", 1)
    } else {
        Patch::of([("session.pool_size", Value::Null)]).and("session.intra_op_threads", cores)
    }
}

fn idle(context: &AnalysisContext) -> Option<Suggestion> {
    let (threads, runs) = at_work(context)?;
    let cores = context.cores()?;
    let busy = threads * runs;
    // A program whose one caller embeds a text at a time leaves runs idle, and no knob helps it.
    let asked = context.asked("session.intra_op_threads").is_some()
        || context.asked("session.pool_size").is_some();
    if !context.on_processor() || busy >= cores || !asked || deterministic(context).is_some() {
        return None;
    }
    let gain = cores as f64 / busy.max(1) as f64;
    let suggestion = Suggestion::new(
        "idle-cores",
        Category::Threads,
        format!("Let {cores} cores work instead of {busy}"),
    )
    .because("capabilities.intra_op_threads", format!("{threads} to an operator"))
    .because("capabilities.concurrent_runs", format!("{runs} at the same time"))
    .because("hardware.cores", format!("{cores} that this process may use"))
    .expecting_speedup(
        gain,
        "cores without a thread wait; what memory and the parts that run alone leave of it has to be measured",
    )
    .warning("Where other programs need the cores, this takes them.");
    Some(suggestion.with_patch(suited(context, cores)))
}

fn oversubscribed(context: &AnalysisContext) -> Option<Suggestion> {
    let (threads, runs) = at_work(context)?;
    let cores = context.cores()?;
    let all = threads * runs;
    if !context.on_processor() || all <= cores {
        return None;
    }
    // A second thread of an operator that has no core makes the first one wait for it.
    let factor = if threads > 1 {
        1.0 + 0.5 * (all as f64 / cores as f64 - 1.0).min(2.0)
    } else {
        1.0 + 0.15 * (all as f64 / cores as f64 - 1.0).min(2.0)
    };
    let suggestion = Suggestion::new(
        "threads-oversubscribed",
        Category::Threads,
        format!("Use {cores} threads, as many as there are cores, and not {all}"),
    )
    .because("capabilities.intra_op_threads", format!("{threads} to an operator"))
    .because("capabilities.concurrent_runs", format!("{runs} at the same time"))
    .because("hardware.cores", format!("{cores} that this process may use"))
    .expecting_speedup(
        factor,
        "threads that share a core wait for each other within every operator, and every run keeps memory of its own",
    );
    Some(suggestion.with_patch(suited(context, cores)))
}

fn deterministic(context: &AnalysisContext) -> Option<Suggestion> {
    let on: bool = context.used("session.deterministic_compute")?;
    if !on || !context.on_onnxruntime() {
        return None;
    }
    let suggestion = Suggestion::new(
        "deterministic-compute",
        Category::Threads,
        "Give up bit-identical vectors, or have them from the portable engine",
    )
    .because("effective.session.deterministic_compute", "true")
    .expecting_speedup(
        2.0,
        "on ONNX Runtime every text then runs alone, on one thread; the portable engine keeps bits as well and batches all the same",
    )
    .warning("Vectors then agree within the bound that docs/parity.md states, and no longer to the last bit.");
    Some(suggestion.with_patch(Patch::of([("session.deterministic_compute", Value::Null)])))
}

fn parallel(context: &AnalysisContext) -> Option<Suggestion> {
    let on: bool = context.used("session.parallel_execution")?;
    if !on {
        return None;
    }
    let suggestion = Suggestion::new(
        "parallel-operators",
        Category::Threads,
        "Run operators one after another",
    )
    .because("effective.session.parallel_execution", "true")
    .because(
        "effective.session.inter_op_threads",
        context
            .used::<String>("session.inter_op_threads")
            .unwrap_or_default(),
    )
    .expecting_speedup(
        1.1,
        "an encoder's operators nearly all wait for the one before, and threads between them take cores from those within",
    );
    let patch = Patch::of([("session.parallel_execution", Value::Null)])
        .and("session.inter_op_threads", Value::Null);
    Some(suggestion.with_patch(patch))
}
