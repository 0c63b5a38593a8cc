//! Buffers, weights, and what the machine has left.

use serde_json::Value;

use super::{BuiltIn, Part, megabytes, percent, rule};
use crate::advisor::context::AnalysisContext;
use crate::advisor::patch::Patch;
use crate::advisor::suggestion::{Category, Impact, Suggestion};

pub(super) const PRESSURE: BuiltIn =
    rule("memory-pressure", &[Part::Stats, Part::Hardware], pressure);
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
pub(super) const PATTERN: BuiltIn = rule("memory-pattern", &[Part::Effective], pattern);

/// The part of the memory from which on it is scarce.
const SCARCE: f64 = 0.1;
/// Requests of buffers from which their ratio says something.
const SOME_REQUESTS: u64 = 64;

fn pressure(context: &AnalysisContext) -> Option<Suggestion> {
    let stats = context.stats.as_ref()?;
    let cleanups = stats.engine.memory_pool.pressure_cleanups;
    let (free, all) = context.free_memory()?;
    let left = free as f64 / all.max(1) as f64;
    if cleanups == 0 && left >= SCARCE {
        return None;
    }
    let impact = if cleanups > 0 {
        Impact::High
    } else {
        Impact::Medium
    };
    let suggestion = Suggestion::new(
        "memory-pressure",
        Category::Memory,
        "Take less memory: the machine has little left",
    )
    .because("hardware.memory", format!("{} of {} are free ({})", megabytes(free), megabytes(all), percent(left)))
    .because("stats.memory_pool.pressure_cleanups", format!("the pool let go of its buffers {cleanups} times"))
    .expecting(
        "no buffers made anew after every cleanup, and batches that are not refused",
        "under pressure the pool empties itself, and batches that are foretold not to fit are split or refused",
    )
    .with_impact(impact)
    .warning("An embedding takes some percent longer.");
    let patch = Patch::of([("memory.max_pool_memory", 4 << 20)])
        .and("memory.max_pool_size", 8)
        .and("batching.max_batch_tokens", 128)
        .and("session.pool_size", 1);
    Some(suggestion.with_patch(patch))
}

fn peak(context: &AnalysisContext) -> Option<Suggestion> {
    let memory = context.memory.as_ref()?;
    let runs = context.stats.as_ref()?.engine.sessions.peak_run_bytes;
    let over = memory.peak_bytes.saturating_sub(memory.current_bytes);
    if memory.peak_bytes < memory.current_bytes.saturating_mul(2) || over < 256 << 20 {
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
        "a peak nearer to what is used all the time",
        "the machine has to have the peak's memory, though it is needed for moments; pieces of several sizes that were let go leave holes",
    )
    .with_impact(Impact::Medium);
    let patch = Patch::of([("batching.max_batch_tokens", 128)]).and("session.cpu_arena", false);
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
    let suggestion = Suggestion::new(
        "pool-misses",
        Category::Memory,
        "Let the buffer pool keep more",
    )
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
            "{} buffers were let go because the pool was full",
            pool.evictions
        ),
    )
    .expecting(
        "fewer allocations, some percent of short batches' time",
        "buffers that were let go are made again for the next batch",
    )
    .with_impact(Impact::Medium);
    let patch = Patch::of([("memory.max_pool_size", Value::Null)])
        .and("memory.max_pool_memory", Value::Null);
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

fn pattern(context: &AnalysisContext) -> Option<Suggestion> {
    let knob = context.effective.as_ref()?.get("session.memory_pattern")?;
    if knob.asked.as_deref() != Some("true") || knob.honoured {
        return None;
    }
    let suggestion = Suggestion::new(
        "memory-pattern",
        Category::Memory,
        "Leave memory patterns off: input shapes vary",
    )
    .because(
        "effective.session.memory_pattern",
        format!("asked for true, {} is used: {}", knob.used, knob.why),
    )
    .expecting(
        "nothing is lost, and the configuration says what happens",
        "a plan is kept for every shape that was seen, which grows without end when lengths vary",
    );
    Some(suggestion.with_patch(Patch::of([("session.memory_pattern", Value::Null)])))
}
