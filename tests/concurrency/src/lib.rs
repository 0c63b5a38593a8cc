//! The batcher, the buffer pool and the pool of slots, model-checked.
//!
//! This crate compiles their source files as they ship, with another [`sync`] beneath them: every lock, every wait
//! and every wake-up is then a point at which the scheduler of [shuttle](https://docs.rs/shuttle) may let another
//! thread go on. A test runs some thousand orders, and a deadlock (a wake-up that went missing) or a wrong answer in
//! any of them fails it and prints what repeats it. The parts of the other crates that these files need are in the
//! small modules here: an engine that adds up ids, texts that are lists of numbers, no clock.
//!
//! Nothing of this ships, and nothing that ships knows of it.
// The tests in the files, and the examples in their documentation, run where they belong. `cargo test --doc` would
// read the examples here too, whatever the manifest says.
#![cfg(not(any(test, doctest)))]
#![allow(dead_code, unreachable_pub)] // What the files hold is used elsewhere too.

// What the files find in their own crates.
pub(crate) use isovec_engine::{EngineError, Result, config, effective, stats};

#[path = "../../../src/batcher/mod.rs"]
pub mod batcher;
#[path = "../../../engine/src/buffers/mod.rs"]
pub mod buffers;
#[path = "../../../src/error.rs"]
pub mod error;
#[path = "../../../src/plan.rs"]
mod plan;
#[path = "../../../native/src/pool.rs"]
mod pool;
#[path = "../../../src/similarity.rs"]
mod similarity;
#[path = "../../../engine/src/tensor.rs"]
pub mod tensor;

mod backend;
pub mod embedder;
pub mod embeddings;
pub mod model;
pub mod slots;
mod sync;
