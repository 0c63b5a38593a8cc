//! Explains why a model is as fast as it is, and finds what would make it faster. Programs that only embed do not
//! compile this crate.
//!
//! - [`advisor`]: rules that read configuration, statistics, profile, texts and hardware, and suggest changes; trials
//!   that measure whether a change helps; [`advisor::tune`], which looks for the fastest configuration.
//! - `budget`: a model made smaller within bounds of quality, size and time, every candidate timed (native only).
//! - [`graph`]: a model's graph, node by node, as text, Mermaid, a page or JSON.
//! - [`trace`]: the summary of a recorded trace: stages, requests, and the causes of slow ones.
//! - `blocking`: the same for callers that block (native only).
//!
//! # Design
//!
//! **Advice is data** (`advisor/`). A rule is a function from a context, which is plain JSON, to suggestions with their
//! evidence. A change is a JSON merge patch of the configuration. A trial (`advisor/trial.rs`) tests a change before it
//! is applied: it runs two embedders in turns and judges by exact intervals that assume nothing about how times are
//! distributed. A change that alters the vectors is rejected, however fast it is. A suggestion of another model is made for
//! its trial (`advisor/remake.rs`); its vectors are others by design, so the report says how near they are. `advisor/tune.rs`
//! repeats advice and trial. For pages the same code is a wasm module of its own (`isovec-js-advisor`), so that a model's module does not
//! contain it.
//!
//! **Statistics are chosen by the data.** Trials, whose turns are paired, use Wilcoxon's signed-rank statistic
//! (`advisor/signed_rank.rs`). Benchmarks that ran at different times use the statistic of Mann and Whitney
//! (`advisor/rank_sum.rs`).
//!
//! **A graph is shown as it runs** (`graph/`). The nodes come from a program (`isovec_encoder`) or from the optimised
//! graph that ONNX Runtime wrote (`isovec_native`). Costs follow the rule that profiles use (`cost.rs` of
//! `isovec_encoder`). There is one model of the view, and one file for each way to draw it.

pub mod advisor;
#[cfg(not(target_arch = "wasm32"))]
pub mod blocking;
#[cfg(not(target_arch = "wasm32"))]
pub mod budget;
pub mod graph;
pub mod trace;

/// Compiles the examples of a chapter of the book.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../docs/improving.md")]
    struct Improving;
}
