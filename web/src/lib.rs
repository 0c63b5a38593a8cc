//! The portable engine: our own kernels with SIMD.
//!
//! It runs in the browser and, with the same code, natively, where it needs no shared library. The targets differ in
//! who drives the work, and the caller passes that in: see [`executor`].
//!
//! `isovec-encoder` lowers transformer encoders to programs that compute nothing for padding, and `isovec-conv`
//! convolutional networks, if the feature `conv` is on. Other models run on [tract](https://github.com/sonos/tract) if the
//! feature `tract` is on.
//!
//! # Design
//!
//! **Runs share the event loop** (`executor`). A run gives the loop a turn after every time slice. Slices carry over
//! from one job to the next: otherwise a thousand short batches would hold the loop as long as one endless batch.
//!
//! **A page's threads are a crew** (`threads/`). JavaScript starts workers on the page's memory. The calling thread
//! takes jobs too, and spins until the others have finished, because a page's own thread may not block.
//!
//! **tract is not the base of this engine.** The first design wanted to plug our kernels into tract. Its code is many
//! times as large as ours, its passes took half a second of a page's first load, and its padded batches leave no room
//! for batches without padding. It runs models that are not encoders. In a page it is a module of its own, which the
//! npm package loads on demand.

mod compiled;
#[cfg(feature = "conv")]
mod convolutions;
mod encoder;
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
