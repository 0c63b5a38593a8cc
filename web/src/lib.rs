//! The portable engine: [tract](https://github.com/sonos/tract) with SIMD.
//!
//! It runs in the browser and, the same code, natively, where it needs no shared library. What
//! differs between the two is who drives the work, and that is handed in: see [`executor`].
//!
//! Batches are computed padded, every row as long as the longest.

mod engine;
pub mod executor;
mod guard;
mod model;
mod ops;
mod pool;
mod provider;
mod rows;
mod run;
mod settings;
mod shapes;
mod tensors;

pub use engine::Portable;

/// The engine's name, as the configuration and the command line write it.
pub const ENGINE: &str = "portable";
