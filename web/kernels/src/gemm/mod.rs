//! Matrix products: `C = activation(A · B + bias) + residual`.
//!
//! Every value of C is one sum, added over k from 0.0 upwards in order, whatever the tile, the
//! block or the thread: its bits depend on its row of A, its column of B and on whether the machine
//! fuses products with sums, which [`Arithmetic::Deterministic`](crate::Arithmetic) forbids.

mod ahead;
mod blocks;
mod buffer;
mod choice;
mod epilogue;
mod error;
mod floats;
mod int8;
mod kernel;
mod lent;
mod pack;
mod pages;
pub(crate) mod simd;
#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests;
mod tile;

pub use blocks::gemm;
pub use buffer::Buffer;
pub use choice::{Choice, Clock};
pub use epilogue::{Epilogue, Rows};
pub use error::Mismatch;
pub use floats::Floats;
pub use int8::{ActivationBits, Activations, Int8Kernel, Int8Weights, gemm_int8};
pub use kernel::Kernel;
pub use pack::{Order, Packed, Packer, Stored};
pub use pages::Pages;
