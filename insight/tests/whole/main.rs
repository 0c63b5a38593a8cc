//! Advice and graphs of real models, on every engine of this machine.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

mod advisor;
mod graph;
