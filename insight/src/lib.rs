//! Why a model is as fast as it is, and what would make it faster. Nobody who only embeds compiles this.
//!
//! - [`advisor`]: rules that look at configuration, statistics, profile, texts and machine, and say what to change; trials
//!   that say whether it helps; [`advisor::tune`], which looks for the fastest configuration.
//! - [`graph`]: what a model is made of, node by node, as text, Mermaid, a page or JSON.
//! - [`trace`]: what a recorded trace says: stages, requests, what was slow and why.
//! - [`blocking`]: the same for callers who wait.

pub mod advisor;
#[cfg(not(target_arch = "wasm32"))]
pub mod blocking;
pub mod graph;
pub mod trace;

/// Compiles the examples of the document that users read.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../docs/improving.md")]
    struct Improving;
}
