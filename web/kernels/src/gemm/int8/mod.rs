//! Matrix products with weights of 8 bits: `C = activation((A · B) + bias) + residual`, in whole
//! numbers up to the scales.
//!
//! Weights are signed bytes with a scale for each column. Activations are quantised row by row when
//! they are used, not to 8 bits but to as many as cannot overflow a sum of 32 bits, 13 to 16. The
//! error of activations, which is the larger one of the two with 8 bits, disappears beside that of
//! the weights. Processors that multiply pairs of 16 bits take them as they are. Processors that
//! multiply bytes take their high bytes and their low bytes, and add the two sums in the end.
//!
//! Sums are exact, so that every machine, tile and thread gives the same bits, without an
//! [`Arithmetic`](crate::Arithmetic) to choose.

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
pub use kernel::Int8Kernel;
pub use weights::Int8Weights;
