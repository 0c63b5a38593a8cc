//! Fuzz targets: they run isovec on generated untrusted input (model files, tokenizers, indexes, listings, tables).
//!
//! A target reads bytes, turns them into an input of isovec, and panics if isovec's answer differs from that of an
//! oracle: another program for the same format, or a simple way to the same result. If both refuse an input, they
//! agree. `cargo xtask fuzz` runs targets under libFuzzer, which looks for inputs that reach new code; `cargo test -p
//! isovec-fuzz` tries every target, without libFuzzer, on
//!
//! - `corpus/NAME/`: inputs that are worth starting from, a few KiB in all;
//! - `regressions/NAME/`: every input that a target once failed on;
//! - some thousand inputs from a fixed seed.
//!
//! # A new target
//! 1. `src/targets/NAME.rs` with `pub fn run(data: &[u8])` and, in its first lines, a description of the oracle.
//!    Structured input comes from [`arbitrary::Unstructured`], so that bytes decide all of it.
//! 2. A line in [`targets::TARGETS`].
//! 3. `fuzz_targets/NAME.rs`, as the others, and its `[[bin]]` in `Cargo.toml`.
//! 4. One or more files in `corpus/NAME/`.
//!
//! isovec's own work goes through [`bounds::ours`], which limits its memory; the oracle's memory does not count. A
//! run of more than a second is a failure too, which libFuzzer finds.

#![allow(clippy::unwrap_used)] // A target panics where its oracle says otherwise.

pub mod bounds;
pub mod guarded;
pub mod panics;
pub mod spelt;
pub mod targets;
pub mod tokenizer_json;
pub mod tokenizers_twin;
