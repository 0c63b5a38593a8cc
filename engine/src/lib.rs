//! The ground that every isovec engine stands on.
//!
//! - [`engine`]: the [`Engine`](engine::Engine) and [`EngineFactory`](engine::EngineFactory) traits.
//! - [`bundle`], [`weights`], [`content`]: a model as a small graph with its weights apart from it.
//! - [`onnx`], [`description`]: the messages of ONNX, and what a graph takes, gives and is made of.
//! - [`budget`]: what reading a model's files may cost.
//! - [`buffers`]: memory for tensors, kept and used again, and how much of it there is.
//! - [`effective`], [`counters`], [`stats`]: what a configuration came to, and what an engine did.
//! - [`profile`]: when it did what, and for whom.
//! - [`fresh`]: files that take their name when they are complete.
//! - [`hardware`], [`cores`]: what an adapter tells of itself, and how many cores there are for this process.
//! - [`tensor`], [`cancel`], [`error`], [`config`], [`fingerprint`]: the words they share.
//!
//! Nothing here names a runtime, and nothing says what the tensors mean: the same contract
//! serves models that read tokens and models that read pixels. Nothing here reads a model's files
//! either: `isovec-hub` chooses and fetches them, `isovec-model` reads them.

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
pub mod profile;
pub mod stats;
mod sync;
pub mod tensor;
pub mod weights;

pub use error::{EngineError, Result};
