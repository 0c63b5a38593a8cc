//! Arithmetic over pixels of 8 bits, in slices: resizing with given weights, grayscale, threshold, normalising.
//!
//! The crate knows no files, formats or models, and it has the same bytes whatever computes them. All sums are whole
//! numbers, and they are exact (`taps.rs` has the proof), so that registers, blocks of rows and threads change nothing.
//!
//! **Instructions are chosen when the program runs** ([`detect_features`]). A kernel is one generic body over the trait
//! `Simd`, compiled for AVX2, AVX-512, NEON and WebAssembly's simd128, and a scalar reference that tests hold it to.

mod error;
mod grayscale;
mod instructions;
mod level;
mod resize;
mod rows;
mod runs;
mod simd;
mod taps;
mod threads;
mod threshold;
mod tone;

pub use error::{PixelsError, Result};
pub use grayscale::grayscale;
pub use instructions::{InstructionSet, detect_features};
pub use level::OptLevel;
pub use resize::resize;
pub use rows::Rows;
pub use taps::Taps;
pub use threshold::threshold;
pub use tone::{Scale, Tone, normalise};
