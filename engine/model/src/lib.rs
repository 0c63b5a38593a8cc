//! Reading, converting and writing model files.
//!
//! - [`bundle`]: makes a [`ModelBundle`](isovec_engine::bundle::ModelBundle) of a model's folder, files or bytes. It
//!   removes nodes that lead to no output, and finds operators that mix rows.
//! - [`onnx`], [`safetensors`]: read, check, write and build graphs, and read checkpoints.
//! - [`convert`]: makes a graph of a checkpoint.
//! - [`head`]: adds the pooling head to the graph.
//! - [`pictures`]: the input of models that read pictures, and their features and labels.
//! - [`precision`]: stores weights in f16 or int8, and widens them again.
//! - [`state_dict`]: reads the small files of PyTorch that hold a layer, without running their pickles.
//!
//! This crate does not choose between a model's files. `isovec-hub` does, by the rules that pages and hubs use as well.
//!
//! Errors are those of the contract, [`EngineError`](isovec_engine::EngineError). A fault in a model's files gives the
//! same error while the files are read and when an engine loads them.
//!
//! # Design
//!
//! **The head is part of the graph** (`head`). Pooling, dense layers, the matryoshka cut and L2 normalisation are ONNX
//! nodes, added when a model is loaded. Every engine therefore returns `[batch, dim]`, computed on its own device, and
//! all engines share one definition.
//!
//! **Safetensors come first** (`convert`). If a model publishes safetensors of a family that this crate converts, every
//! target loads those. There is then one graph and one identity, whatever ONNX files lie beside them. ONNX is used if
//! there is nothing else, or if a file is named.
//!
//! **Files are mapped part by part** (`bundle/mapped.rs`). Natively a large file is mapped and lent in parts. When a
//! reader drops a part, its pages go back to the system, so hashing, converting or packing a model never holds the file
//! in memory beside the copy. Which systems take pages back depends on the target. ONNX files are read without their
//! large tensors (`onnx/shorten.rs`).
//!
//! **Weights may be stored small** (`precision`). f16 and int8 weights are standard ONNX nodes behind a weight.
//! `narrowed` and `widened` are inverse. ONNX Runtime computes with widened weights. The portable engine multiplies
//! int8 weights as they are. It quantises activations token by token, to as many bits (13 to 15) as 32-bit sums allow.
//! The integer instructions take 16-bit operands anyway, so these bits cost nothing, and rounding the weights is the
//! only loss. The identity is that of the original weights. The SDK caches small weights that were made at load.
//!
//! **A model that mixes rows gets one text at a time** (`bundle/rows.rs`). Dynamic quantisation scales a whole batch at
//! once, so a text's vector would depend on the other texts. This crate finds such operators in the graph, and the SDK
//! then runs each text alone and without padding.

pub mod bundle;
pub mod convert;
pub mod head;
mod identity;
pub mod onnx;
pub mod pictures;
pub mod precision;
pub mod safetensors;
mod sniff;
pub mod sparse;
pub mod state_dict;
pub mod tokens;
