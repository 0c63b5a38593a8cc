//! The ONNX project's own backend node tests on every engine of isovec.
//!
//! The tests are those of the Python package `onnx` 1.20.0, which `cargo xtask setup nodes` brings:
//! 1,653 small graphs with inputs and the outputs that they have to have. Results are compared as the
//! project's own test runner compares them ([`compare`]), shapes and element types included.
//!
//! - [`direct`]: the graph as it is, for engines that take any graph (ONNX Runtime, tract).
//! - [`rows`]: the graph between an embedding table and rows of results, for engines that run
//!   encoders (isovec's own programs, on the processor and on a GPU).
//! - [`lists`]: the tests that each engine passes, and why it does not run the rest, as committed in `lists/`.
//!   `ISOVEC_WRITE_LISTS=1` writes them; otherwise every changed outcome fails.

pub mod cases;
pub mod compare;
pub mod direct;
pub mod engines;
pub mod lists;
pub mod rows;
pub mod values;
