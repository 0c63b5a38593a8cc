//! Advice, graphs and budgets of real models, on every engine of this machine.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod advisor;
mod budget;
#[cfg(feature = "image")]
mod budget_pictures;
mod graph;
mod remake;
