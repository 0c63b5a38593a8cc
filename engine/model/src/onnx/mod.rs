//! Reading, writing and building ONNX graphs.

pub mod builder;
mod check;
mod identity;
pub(crate) mod read;
mod shorten;
mod skim;
mod tensor;
mod write;

pub use builder::GraphBuilder;
pub use identity::{IDENTITY_KEY, TENSORS_KEY, carry_identity, claims_identity};
pub use read::read_model;
pub use write::{Staged, export, stage, write_model};
