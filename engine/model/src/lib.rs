//! Model files: from what a publisher hands out to what an engine takes, and back.
//!
//! - [`bundle`]: a model's folder, files or bytes as a [`ModelBundle`](isovec_engine::bundle::ModelBundle), what no longer leads
//!   to an output taken away, and operators that mix rows found.
//! - [`onnx`], [`safetensors`]: reading, checking, writing and building graphs, and reading checkpoints.
//! - [`convert`]: from a checkpoint to a graph.
//! - [`head`]: the pooling head as part of the graph.
//! - [`precision`]: weights stored in f16 or int8, and back.
//!
//! Which of a model's files are read is not decided here but in `isovec-hub`, by whose rules pages and hubs go as well.
//!
//! Errors are the contract's, [`EngineError`](isovec_engine::EngineError): one that a model's files lead to is the same whether
//! it is noticed while they are read or when an engine loads them.

pub mod bundle;
pub mod convert;
pub mod head;
mod identity;
pub mod onnx;
pub mod precision;
pub mod safetensors;
mod sniff;
