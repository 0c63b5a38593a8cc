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

/// Texts of a call from which there is enough to do for several runs.
const MANY_TEXTS: f64 = 8.0;

/// What computes at the most, and on how many cores.
struct AtWork {
    /// To an operator.
    threads: usize,
    /// At the same time.
    runs: usize,
    /// Of all runs.
    all: usize,
    cores: usize,
}

impl AtWork {
    fn of(context: &AnalysisContext) -> Option<Self> {
        let capabilities = context.capabilities.as_ref()?;
        let (threads, runs) = (capabilities.intra_op_threads, capabilities.concurrent_runs);
        let all = capabilities.shared_threads;
        Some(Self {
            threads,
            runs,
            all: all.unwrap_or(threads.saturating_mul(runs)),
            cores: context.cores()?,
        })
    }

    fn speaks_for(&self, suggestion: Suggestion) -> Suggestion {
        let Self {
            threads,
            runs,
            all,
            cores,
        } = self;
        suggestion
            .because(
                "capabilities.intra_op_threads",
                format!("{threads} to an operator"),
            )
            .because(
                "capabilities.concurrent_runs",
                format!("{runs} at the same time, with {all} threads together"),
            )
            .because(
                "hardware.cpu",
                format!("{cores} cores that this process may use"),
            )
    }
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
    let work = AtWork::of(context)?;
    let (cores, busy) = (work.cores, work.all);
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
    .expecting_speedup(
        gain,
        "cores without a thread are idle; memory and serial parts reduce the gain, so measure it",
    )
    .warning("Where other programs need the cores, this takes them.");
    Some(
        work.speaks_for(suggestion)
            .with_patch(suited(context, cores)),
    )
}

fn oversubscribed(context: &AnalysisContext) -> Option<Suggestion> {
    let work = AtWork::of(context)?;
    let (cores, all) = (work.cores, work.all);
    // Two threads of one core share what computes, which gains little and costs little.
    if !context.on_processor() || all <= context.hardware_threads()? {
        return None;
    }
    // A second thread of an operator that has no core makes the first one wait for it.
    let factor = if work.threads > 1 {
        1.0 + 0.5 * (all as f64 / cores as f64 - 1.0).min(2.0)
    } else {
        1.0 + 0.15 * (all as f64 / cores as f64 - 1.0).min(2.0)
    };
    let suggestion = Suggestion::new(
        "threads-oversubscribed",
        Category::Threads,
        format!("Use {cores} threads, as many as there are cores, and not {all}"),
    )
    .expecting_speedup(
        factor,
        "threads that share a core wait for each other within every operator, and every run has its own memory",
    );
    Some(
        work.speaks_for(suggestion)
            .with_patch(suited(context, cores)),
    )
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
        "on ONNX Runtime every text then runs alone, on one thread; the portable engine gives equal bits and still batches",
    )
    .warning("Vectors then agree within the bound that docs/parity.md states, and no longer to the last bit.");
    Some(suggestion.with_patch(Patch::of([("session.deterministic_compute", Value::Null)])))
}
