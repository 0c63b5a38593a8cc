//! Makes models smaller.
//!
//! - [`vocabulary`]: takes tokens that a corpus does not use out of a tokenizer and out of a model's table.
//! - [`distil`]: makes a static model of a model's vectors of single tokens.
//! - [`mod@measure`]: mean squared error, and the ratio of signal to quantisation noise.
//! - [`calibrate`]: ranges of activations, in flat memory.
//! - [`int4`]: matrices in 4 bits, for the download.
//! - [`int8`]: products of whole numbers of 8 bits, for ONNX Runtime.
//! - [`convolutions`]: layers of convolutional networks in whole numbers of 8 bits, for ONNX Runtime.
//! - [`pruning`]: columns, heads, channels and layers that a model can do without.
//! - [`simplify`]: graphs with fewer nodes.
//! - [`budget`]: a search for a model that keeps bounds of quality, size and time.
//! - [`history`]: what was done to a model, in its own metadata.
//!
//! This crate changes models as `isovec-model` reads them. It runs none: `isovec::optimize` does that, writes the result and
//! measures it.

pub mod budget;
pub mod calibrate;
pub mod convolutions;
pub mod distil;
pub mod error;
pub mod history;
pub mod int4;
pub mod int8;
pub mod measure;
mod operators;
pub mod pruning;
mod rewriting;
pub mod simplify;
mod source;
mod sweeps;
pub mod vocabulary;

pub use error::{OptimizeError, Result};
