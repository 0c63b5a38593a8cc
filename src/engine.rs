//! Who computes, and the model as it is seen there.

pub use isovec_engine::description::ModelDescription;
pub use isovec_engine::engine::{Capabilities, ProviderInfo};
