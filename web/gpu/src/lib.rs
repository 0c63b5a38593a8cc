//! The GPU engine: WGSL kernels over rows without padding.
//!
//! A program ([`isovec_encoder::Program`]) lists a model's operators. `dispatch/` turns it into dispatches, `kernels/` writes
//! the WGSL (the fixed parts are in `wgsl/`), `device/` opens an adapter and reports its state, `model.rs` runs
//! batches, and `check.rs` compares a few rows with the processor before the model is used.
//!
//! # Design
//!
//! **A GPU runs the same program as the processor.** Products and attention have a kernel each. Everything between them
//! (lookups, norms, pooling, anything computed row by row) becomes a part of the kernel that reads it. Its WGSL is
//! generated from the operators (`kernels/row.rs`). MiniLM takes 44 dispatches for any batch. Results share a few
//! buffers in turn (`dispatch/slots.rs`). Bindings are decided once for each size (`arena.rs`). Only the vectors come back.
//! Layers of the same shape have the same WGSL text, so eight or nine pipelines are compiled. A real GPU gets a few
//! more: one for each way of multiplying that it may choose. A run is submitted in pieces of about 50 ms, and can be
//! cancelled between them. Where an adapter has subgroups, their threads share what they read and add up
//! (`wgsl/*subgroups.wgsl`).
//!
//! **f16 is used for storage** (`dispatch/halves.rs`). Weights are 16-bit, and so are results that only products and
//! attention read. Sums and the residual stream are not. Values that overflow f16 become NaN, so the vector fails the
//! finiteness check.
//!
//! **A GPU is checked before it is used** (`check.rs`). When a model is loaded, a few texts also run on the processor.
//! An adapter whose vectors differ is passed over. If subgroups or f16 computed them, the adapter is first tried
//! without these. Kernels that passed on a device with its driver are checked with one text at the next start, against
//! the cached result. [`Host`] gives this crate the SDK's cache. The SDK replaces a lost device. It uses a processor
//! that emulates a GPU only if the configuration asks for it.
//!
//! **Programs are lowered here, in a crate of its own**, and not from tract's typed graph. A page has no tract for an
//! encoder. A program already has no padding and no masks, fused activations and residuals, and views instead of
//! reshapes. The operators to support are the variants of `Op`. `wgpu` is by far the largest dependency, and a crate of
//! its own keeps it out of every other build.

mod adapters;
mod arena;
mod batch;
mod check;
mod constants;
mod device;
mod dispatch;
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
