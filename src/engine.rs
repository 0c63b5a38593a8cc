//! The provider that computes, and the model as its engine describes it.

pub use isovec_engine::description::ModelDescription;
pub use isovec_engine::engine::{Capabilities, ProviderInfo};
