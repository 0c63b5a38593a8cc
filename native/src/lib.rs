//! The native engine of isovec: ONNX Runtime.
//!
//! [`OnnxRuntime`] makes engines from the shared library that was named (in its [`Options`], in
//! `ORT_DYLIB_PATH`, or by set-up in isovec's cache) and computes on the provider that they
//! ask for, or fails with the reason. Its modules:
//!
//! - `library`: finds the library and checks it before it is used.
//! - `runtime`: the library and the environment, of which a process has one each.
//! - `sys`: owning handles over ONNX Runtime's C interface; nearly all `unsafe` code is there.
//! - `weights`, `graph`: turn a bundle into what a session takes; weights are lent, not copied.
//! - `options`, `settings`, `provider`: the options of this engine, the effective value of each knob, and the provider that
//!   computes.
//! - `pool`, `slot`, `engine`: runs, their queue, and how a run is cancelled.
//! - `outputs`, `predict`, `counts`: predict a run's memory, and count what it took.
//! - `kept`, `optimized`: the cache of optimised graphs on disk, and the optimised graph for `isovec-insight`.
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
//!
//! # Design
//!
//! **One session, many slots** (`engine`, `slot`, `pool`). Several threads may call ONNX Runtime's `Run` at once. A
//! pool of sessions would therefore gain nothing, and would copy what each session makes of the weights: sessions share
//! prepacked weights only for initializers that are handed over and that fusion leaves alone. There is one session with
//! one set of weights and one arena, and there are `pool_size` slots. A slot holds what one run needs: run options,
//! through which the run is cancelled, and its share of the statistics. A caller that finds an idle slot runs on its
//! own thread. If no slot is idle, the batch goes to the engine's threads. These keep a slot while any batch waits, and
//! go from one batch to the next without a pause. (An earlier version handed a slot from caller to caller. A quarter of
//! two cores was then idle while the next caller woke up.)
//!
//! **ONNX Runtime is driven through its C interface.** `ort`'s `Environment` exists once in a process, and its `run`
//! takes `&mut self`.
//!
//! **Memory is predicted** (`predict`). Two small runs at load give the bytes of a batch by its shape. The SDK's
//! planner uses the prediction to cut batches before memory is allocated.
//!
//! **An engine is loaded for exactly one provider, or fails with a cause** (`provider`). It never falls back by itself.
//! After loading, it reads back which provider has the nodes, and refuses a provider that has none.

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
#[cfg(feature = "load-dynamic")]
pub use library::offer;
pub use optimized::optimized;
pub use options::{CudaOptions, Options, Provider, TensorRtOptions};

/// The engine's name in the config, on the command line and in errors.
pub(crate) const NAME: &str = "onnxruntime";
