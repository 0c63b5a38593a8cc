//! Rules about buffers, weights and free memory.

use serde_json::Value;

use super::{BuiltIn, Part, megabytes, percent, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Impact, Suggestion};

pub(super) const PRESSURE: BuiltIn = rule(
    "memory-pressure",
    &[Part::Effective, Part::Stats, Part::Hardware],
    pressure,
);
pub(super) const FRAGMENTATION: BuiltIn = rule(
    "memory-peak",
    &[Part::Effective, Part::Memory, Part::Stats],
    peak,
);
pub(super) const POOL_MISSES: BuiltIn =
    rule("pool-misses", &[Part::Effective, Part::Stats], pool_misses);
pub(super) const NOT_MAPPED: BuiltIn = rule(
    "model-not-mapped",
    &[Part::Effective, Part::Model],
    not_mapped,
);

/// The part of the memory from which on it is scarce.
const SCARCE: f64 = 0.1;
/// Tokens of a batch where memory is scarce.
const SMALL_BATCH: usize = 128;
/// The part of a peak that runs have to have taken for smaller ones to lower it.
const OF_RUNS: f64 = 0.25;
/// Requests of buffers from which their ratio says something.
const SOME_REQUESTS: u64 = 64;

/// Limits lower than those in effect; `None` where all are as low.
fn lower(context: &AnalysisContext) -> Option<Patch> {
    let above = |knob, limit| context.used::<u64>(knob).is_some_and(|used| used > limit);
    let mut patch = Patch::default();
    if context.used("memory.memory_pool") == Some(true) {
        for (knob, limit) in [
            ("memory.max_pool_memory", 4 << 20),
            ("memory.max_pool_size", 8),
        ] {
            if above(knob, limit) {
                patch = patch.and(knob, limit);
            }
        }
    }
    if has_large_batches(context) {
        patch = patch.and("batching.max_batch_tokens", SMALL_BATCH);
    }
    if above("session.pool_size", 1) {
        patch = patch.and("session.pool_size", 1);
    }
    (patch != Patch::default()).then_some(patch)
}

/// Whether smaller batches would take less and cost little: a GPU is idle in small ones.
fn has_large_batches(context: &AnalysisContext) -> bool {
    context.on_processor() && context.max_batch_tokens() > Some(SMALL_BATCH)
}

fn pressure(context: &AnalysisContext) -> Option<Suggestion> {
    let stats = context.stats.as_ref()?;
    let cleanups = stats.engine.memory_pool.pressure_cleanups;
    let memory = context.free_memory();
    let left = memory.map(|(free, all)| free as f64 / all.max(1) as f64);
    if cleanups == 0 && left? >= SCARCE {
        return None;
    }
    let impact = if cleanups > 0 {
        Impact::High
    } else {
        Impact::Medium
    };
    let mut suggestion = Suggestion::new(
        "memory-pressure",
        Category::Memory,
        "Take less memory: the machine has little left",
    )
    .because("stats.memory_pool.pressure_cleanups", format!("the pool freed its buffers {cleanups} times"))
    .expecting(
        "no new buffers after every cleanup, and no refused batches",
        "under pressure the pool empties itself, and batches that are predicted not to fit are split or refused",
    )
    .with_impact(impact)
    .warning("An embedding takes some percent longer.");
    if let (Some((free, all)), Some(left)) = (memory, left) {
        let text = format!(
            "{} of {} are free ({})",
            megabytes(free),
            megabytes(all),
            percent(left)
        );
        suggestion = suggestion.because("hardware.memory", text);
    }
    Some(suggestion.with_patch(lower(context)?))
}

fn peak(context: &AnalysisContext) -> Option<Suggestion> {
    let memory = context.memory.as_ref()?;
    let runs = context.stats.as_ref()?.engine.sessions.peak_run_bytes;
    let over = memory.peak_bytes.saturating_sub(memory.current_bytes);
    if memory.peak_bytes < memory.current_bytes.saturating_mul(2)
        || over < 256 << 20
        // Else it was a peak of loading, or somebody else's in the process.
        || (runs as f64) < OF_RUNS * over as f64
    {
        return None;
    }
    let mut patch = Patch::default();
    if has_large_batches(context) {
        patch = patch.and("batching.max_batch_tokens", SMALL_BATCH);
    }
    // A limit is kept by foretelling, which an arena is needed for.
    if context.on_onnxruntime()
        && context.used("session.cpu_arena") == Some(true)
        && context.asked("memory.memory_limit").is_none()
    {
        patch = patch.and("session.cpu_arena", false);
    }
    if patch == Patch::default() {
        return None;
    }
    let suggestion = Suggestion::new(
        "memory-peak",
        Category::Memory,
        "Keep the peak of memory down",
    )
    .because(
        "memory",
        format!(
            "{} at the peak, {} now ({:.1} times)",
            megabytes(memory.peak_bytes),
            megabytes(memory.current_bytes),
            memory.peak_bytes as f64 / memory.current_bytes.max(1) as f64
        ),
    )
    .because("stats.sessions.peak_run_bytes", format!("runs took up to {} of it", megabytes(runs)))
    .expecting(
        "a peak nearer to the usual use",
        "the machine has to have the peak's memory, though it is needed for moments; freed pieces of several sizes leave holes",
    )
    .with_impact(Impact::Medium);
    Some(suggestion.with_patch(patch))
}

fn pool_misses(context: &AnalysisContext) -> Option<Suggestion> {
    let pool = &context.stats.as_ref()?.engine.memory_pool;
    let off = context.asked("memory.memory_pool") == Some("false");
    if off {
        let batches = context.stats.as_ref()?.calls.batches;
        let suggestion = Suggestion::new(
            "pool-misses",
            Category::Memory,
            "Keep buffers from one batch to the next",
        )
        .because("effective.memory.memory_pool", "false")
        .because(
            "stats.calls.batches",
            format!("{batches} batches, each with buffers of its own"),
        )
        .expecting(
            "fewer allocations, some percent of short batches' time",
            "every batch asks the system for its inputs and outputs again",
        )
        .with_impact(Impact::Medium);
        return Some(suggestion.with_patch(Patch::of([("memory.memory_pool", Value::Null)])));
    }
    let ratio = pool.hit_ratio();
    let misses = pool.requests.saturating_sub(pool.pool_hits);
    if !pool.enabled || pool.requests < SOME_REQUESTS || ratio >= 0.8 || pool.evictions * 2 < misses
    {
        return None;
    }
    let suggestion = Suggestion::new("pool-misses", Category::Memory, "Enlarge the buffer pool")
        .because(
            "stats.memory_pool.pool_hits",
            format!(
                "{} of {} requests found a buffer ({})",
                pool.pool_hits,
                pool.requests,
                percent(ratio)
            ),
        )
        .because(
            "stats.memory_pool.evictions",
            format!(
                "{} buffers were freed because the pool was full",
                pool.evictions
            ),
        )
        .expecting(
            "fewer allocations, some percent of short batches' time",
            "freed buffers are allocated again for the next batch",
        )
        .with_impact(Impact::Medium);
    let mut patch = Patch::default();
    for knob in ["memory.max_pool_size", "memory.max_pool_memory"] {
        if let Some(used) = context.used::<u64>(knob) {
            patch = patch.and(knob, used.saturating_mul(2));
        }
    }
    Some(suggestion.with_patch(patch))
}

fn not_mapped(context: &AnalysisContext) -> Option<Suggestion> {
    if context.asked("memory.mmap") != Some("false") {
        return None;
    }
    let bytes = context.model.as_ref()?.weights_bytes;
    let suggestion = Suggestion::new(
        "model-not-mapped",
        Category::Memory,
        "Map the model's file instead of reading it",
    )
    .because("effective.memory.mmap", "false")
    .because("model.weights_bytes", megabytes(bytes))
    .expecting(
        format!("up to {} less memory, and a faster start", megabytes(bytes)),
        "pages of a mapped file are shared by all processes that map it, and go where memory is short",
    )
    .with_impact(Impact::Medium)
    .warning("On a network file system that goes away, a mapped file goes with it.");
    Some(suggestion.with_patch(Patch::of([("memory.mmap", Value::Null)])))
}
