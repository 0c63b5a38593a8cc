//! The native engine of isovec: ONNX Runtime.
//!
//! [`OnnxRuntime`] makes engines from the shared library that was named (in the config, in
//! `ORT_DYLIB_PATH`, or by set-up in isovec's cache) and computes on the CPU. How it is built:
//!
//! - `library`: which library, and what is wrong with it, found out before it is used.
//! - `runtime`: the one library and environment of the process.
//! - `sys`: owning handles over ONNX Runtime's C interface; nearly all `unsafe` code is there.
//! - `weights`, `graph`: a bundle as a session takes it, its weights lent and not copied.
//! - `pool`, `engine`: sessions, who waits for them, and how a run is cancelled.
//! - `explain`: ONNX Runtime's messages as isovec's errors.
//!
//! # Limits
//! Runs that wait are queued without a bound: callers (the SDK's batcher) bound them. A
//! cancelled run stops between two operators, not inside one.
//!
//! # Other users of ONNX Runtime in the same program
//! The `ort` crate gives a process one library and lets one party build its `Environment`. This
//! crate shares the library and leaves that `Environment` alone (ONNX Runtime counts references
//! to the one beneath it), so that a program may use `ort`, or a crate built on it, before,
//! after or beside isovec.

mod engine;
mod explain;
mod factory;
mod graph;
mod library;
mod pool;
mod runtime;
mod sys;
#[cfg(test)]
mod tests;
mod weights;

pub use factory::OnnxRuntime;

/// The engine's name in the config, on the command line and in errors.
pub(crate) const NAME: &str = "onnxruntime";
