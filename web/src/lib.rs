//! The portable engine: our own kernels with SIMD.
//!
//! It runs in the browser and, the same code, natively, where it needs no shared library. What
//! differs between the two is who drives the work, and that is handed in: see [`executor`].
//!
//! Transformer encoders become programs (`isovec-encoder`) in which nothing is computed for padding.
//! What is no such encoder runs on [tract](https://github.com/sonos/tract), where the feature
//! `tract` is on.

mod compiled;
mod engine;
pub mod executor;
mod guard;
mod model;
mod program;
mod provider;
mod rows;
mod settings;
mod shapes;
mod threads;
#[cfg(feature = "tract")]
mod tract;
mod validate;

pub use engine::Portable;

/// The engine's name, as the configuration and the command line write it.
pub const ENGINE: &str = "portable";
