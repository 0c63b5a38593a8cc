//! Matrix products with weights of 8 bits: `C = activation((A · B) + bias) + residual`, in whole
//! numbers up to the scales.
//!
//! Weights are signed bytes with a scale for each column. Activations are quantised when they are
//! used, to [`ActivationBits`]: row by row not to 8 bits but to as many as cannot overflow a sum of
//! 32 bits, 13 to 16, so that their error, which is the larger one of the two with 8 bits,
//! disappears beside that of the weights; or to 8 bits, by groups of 128 values. Processors that
//! multiply pairs of 16 bits take both as they are. Processors that multiply bytes take the wide
//! ones' high bytes and their low bytes, and add the two sums in the end.
//!
//! Sums are exact, and what groups give is added in their order, so that every machine, tile and
//! thread gives the same bits, without an [`Arithmetic`](crate::Arithmetic) to choose.

mod activations;
mod blocks;
mod form;
mod kernel;
mod quantise;
mod simd;
#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests;
mod tile;
mod weights;

pub use activations::Activations;
pub use blocks::gemm_int8;
pub use form::ActivationBits;
pub use kernel::Int8Kernel;
pub use weights::Int8Weights;
