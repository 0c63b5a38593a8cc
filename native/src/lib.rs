//! The native engine of isovec: ONNX Runtime.
//!
//! [`OnnxRuntime`] makes engines from the shared library that was named (in its [`Options`], in
//! `ORT_DYLIB_PATH`, or by set-up in isovec's cache) and computes on the provider that they
//! ask for, or says why it cannot. How it is built:
//!
//! - `library`: which library, and what is wrong with it, found out before it is used.
//! - `runtime`: the one library and environment of the process.
//! - `sys`: owning handles over ONNX Runtime's C interface; nearly all `unsafe` code is there.
//! - `weights`, `graph`: a bundle as a session takes it, its weights lent and not copied.
//! - `options`, `settings`, `provider`: what this engine alone is told, what the knobs come to, and who truly computes.
//! - `pool`, `slot`, `engine`: runs, who waits for them, and how one is cancelled.
//! - `outputs`, `predict`, `counts`: what a run will take, and what it took.
//! - `kept`, `optimized`: the optimised graph on disk, and for whoever shows a model.
//! - `explain`: ONNX Runtime's messages as isovec's errors.
//!
//! # One session, many slots
//! ONNX Runtime's `Run` may be called by several threads at once, so a pool is one session with a
//! slot per run that may be under way. All slots share the weights, what the session repacked of
//! them, and its memory; a session each would repack for itself all that fusions make new.
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

mod counts;
mod engine;
mod explain;
mod factory;
mod graph;
mod kept;
mod library;
mod optimized;
mod options;
mod outputs;
mod own_profile;
mod pool;
mod predict;
mod provider;
mod runtime;
mod settings;
mod slot;
mod sync;
mod sys;
#[cfg(test)]
mod tests;
mod weights;

pub use factory::OnnxRuntime;
pub use optimized::optimized;
pub use options::{CudaOptions, Options, Provider, TensorRtOptions};

/// The engine's name in the config, on the command line and in errors.
pub(crate) const NAME: &str = "onnxruntime";
