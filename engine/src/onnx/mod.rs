//! Reading, writing and building ONNX graphs.

pub mod builder;
pub mod proto;

pub use builder::GraphBuilder;
