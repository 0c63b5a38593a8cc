//! The GPU engine: WGSL kernels over rows without padding.
//!
//! [`isovec_encoder::Plan`] says what a model amounts to. `plan/` makes dispatches of it: products and
//! attention have a kernel each, everything between them becomes a part of the kernel that reads it,
//! and results take turns in a few buffers. `kernels/` writes the WGSL, of which the fixed parts lie
//! in `wgsl/`. `device/` opens an adapter and says what became of it, `model.rs` runs batches,
//! `check.rs` compares a few rows with the processor before anybody else may use a model.

mod adapters;
mod arena;
mod batch;
mod check;
mod constants;
mod device;
mod engine;
#[cfg(feature = "faults")]
mod faults;
mod host;
mod kernels;
mod limits;
mod model;
#[cfg(test)]
mod mutants;
mod options;
mod plan;
mod settings;
mod timing;
mod tuning;
mod upload;

pub use adapters::adapters;
pub use engine::{GpuEngine, WebGpu};
#[cfg(feature = "faults")]
pub use faults::lose_devices;
pub use host::{Alone, Host};
pub use options::Options;

/// The engine's name.
const ENGINE: &str = "gpu";

/// The provider's name, as configurations write it.
const PROVIDER: &str = "webgpu";
