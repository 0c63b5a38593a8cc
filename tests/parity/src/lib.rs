//! The parity suite: the same text gives the same vector, on every engine and target.
//!
//! [`suite::run`] is called by `cargo test` natively for each engine (`tests/whole/parity.rs`), and by
//! the browser's test runner for the wasm build (`bindings/js/tests/`). `tests/whole/mutants.rs` proves
//! that the bounds are tight enough to see a wrong formula.

pub mod bits;
pub mod deviation;
pub mod reference;
pub mod suite;

pub use deviation::{BOUNDS, BOUNDS_F16, Deviation};
pub use reference::Reference;
pub use suite::{Report, run};
