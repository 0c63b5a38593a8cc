//! The ground that every isovec engine stands on.
//!
//! - [`engine`]: the [`Engine`](engine::Engine) and [`EngineFactory`](engine::EngineFactory) traits.
//! - [`bundle`], [`weights`], [`safetensors`]: a model as a small graph with its weights apart from it.
//! - [`choice`]: which of its files are a model.
//! - [`onnx`], [`convert`], [`head`]: reading, writing, building and completing graphs.
//! - [`precision`]: weights stored in f16 or int8, and back.
//! - [`budget`]: what reading a model's files may cost.
//! - [`buffers`]: memory for tensors, kept and used again, and how much of it there is.
//! - [`effective`], [`counters`], [`stats`]: what a configuration came to, and what an engine did.
//! - [`profile`]: when it did what, and for whom.
//! - [`fresh`]: files that take their name when they are complete.
//! - [`hardware`], [`cores`]: what an adapter tells of itself, and how many cores there are for this process.
//! - [`tensor`], [`cancel`], [`error`], [`config`], [`description`], [`fingerprint`]: the words they share.
//!
//! Nothing here names a runtime, and nothing says what the tensors mean: the same contract
//! serves models that read tokens and models that read pixels.

pub mod budget;
pub mod buffers;
pub mod bundle;
pub mod cancel;
pub mod choice;
pub mod config;
pub mod content;
pub mod convert;
pub mod cores;
pub mod counters;
pub mod description;
pub mod effective;
pub mod engine;
pub mod error;
pub mod fingerprint;
pub mod fresh;
pub mod hardware;
pub mod head;
#[cfg(feature = "hub-client")]
pub mod hub;
pub mod maybe_send;
pub mod onnx;
pub mod panics;
mod paths;
pub mod precision;
pub mod profile;
pub mod safetensors;
mod sniff;
pub mod stats;
mod sync;
pub mod tensor;
pub mod weights;

pub use error::{EngineError, Result};
