//! The contract that every isovec engine fulfils.
//!
//! - [`engine`]: the [`Engine`](engine::Engine) and [`EngineFactory`](engine::EngineFactory) traits.
//! - [`bundle`], [`weights`], [`content`]: a model as a small graph, with its weights apart from it.
//! - [`onnx`], [`description`]: the messages of ONNX, and a graph's inputs, outputs and operators.
//! - [`budget`]: limits on what reading a model's files may cost.
//! - [`buffers`]: a pool of memory for tensors, and a gauge of the memory that there is.
//! - [`effective`], [`counters`], [`stats`]: the effective value of each knob, and what an engine did.
//! - [`profile`]: a record of when an engine did what, and for which request.
//! - [`fresh`]: files that get their final name when they are complete.
//! - [`hardware`], [`cores`]: what an adapter reports, and how many cores this process may use.
//! - [`tensor`], [`cancel`], [`error`], [`config`], [`fingerprint`]: the types that the others share.
//!
//! This crate names no runtime and does not say what tensors mean: the same contract serves models that read tokens and
//! models that read pixels. It reads no model files either: `isovec-hub` chooses and fetches them, `isovec-model` reads
//! them.
//!
//! # Design
//!
//! **Engines are object-safe and async, and take `&self`** (`engine`). Natively each engine has a thread for every run
//! that may be under way. That thread completes the future, and polling never computes. In the browser a run yields to
//! the event loop between operators. Dropping the future cancels the run. `run_blocking` exists on both targets,
//! because a blocking run is legitimate in a web worker.
//!
//! **A batch owns its tensors.** A caller may drop a run's future while the engine's thread still reads the batch.
//! Borrowed tensors would make that unsound or force a copy. `RunOutput::inputs` returns the tensors, so pools lose
//! nothing.
//!
//! **Weights live apart from the graph** (`weights`). A `ModelBundle` is a small graph and a `WeightSource`, which
//! hands out one tensor at a time. Engines take the tensors in order and drop each one before they take the next, so no
//! target holds the whole model twice. `WeightSource::read` is async and takes an index, because the browser's sources
//! fetch. A `Content` (`content`) is data that need not be in memory, such as an array that JavaScript holds. Tables
//! stream into place in pieces.
//!
//! **A file gets its name when it is complete** (`fresh`). A file is first written beside its place, under a random
//! name that is created exclusively. The random name does not extend the user's file name or contain the process id:
//! containers share process ids.
//!
//! **One fingerprint says which vectors may be compared** (`fingerprint`). It covers the original weights, the
//! architecture, the vocabulary, pooling, truncation, prompts, normalisation and the dimension. The precision class may
//! differ and is reported. Values that are unknown, or only claimed by a file, are reported as well.
//!
//! **One budget covers all reading** (`budget`). Every reader of model files asks it before it spends anything: bytes,
//! elements, steps, nodes. The budget grows with the size of the files. It counts in `u64` on every target.
//!
//! **Buffers return themselves to their pool** (`buffers`, `tensor`). A tensor knows its pool and returns its memory
//! when it is dropped: after a run, in a cancelled future, in an error. Callers do not have to remember anything, and
//! no lock is held while a buffer is in use. Token ids are written once, into the tensor that the engine reads. Outputs
//! are bound to pooled tensors before the run. `buffers::gauge` measures the memory: natively that of the machine and
//! of its control group, in the browser the growth of WebAssembly memory. The pool has the same code on both targets.
//!
//! **A profile is a ring of events** (`profile`). A request opens a scope, a batch carries the scope to the engine, and
//! the code that works opens spans in it. A scope is a null pointer while nothing is being recorded. The same spans go
//! to `tracing` if a subscriber wants them.
//!
//! **Effective configuration and statistics have one shape on every target** (`effective`, `stats`, `counters`).
//! Engines note their own knobs and count their own runs. The SDK adds its part.
//!
//! **Few modules depend on the target.** In this crate they are `maybe_send` (what `Send` means), `cores` and
//! `buffers::gauge`.

pub mod budget;
pub mod buffers;
pub mod bundle;
pub mod cancel;
pub mod config;
pub mod content;
pub mod cores;
pub mod counters;
pub mod description;
pub mod effective;
pub mod engine;
pub mod error;
pub mod fingerprint;
pub mod fresh;
pub mod hardware;
pub mod maybe_send;
pub mod onnx;
pub mod panics;
pub mod pause;
pub mod profile;
pub mod stats;
mod sync;
pub mod tensor;
pub mod weights;

pub use error::{EngineError, Result};
