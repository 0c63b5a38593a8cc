//! Weights stored small, computed in f32.
//!
//! [`quantize_weights`] and [`dequantize`] do one tensor, for programs that quantise themselves. [`narrowed`] stores a model's
//! matrices in fewer bits, as nodes of the standard operator set that every ONNX
//! runtime knows; [`widened`] removes them, for engines that compute on f32 weights, and [`in_blocks`]
//! makes products of ONNX Runtime of them that multiply whole numbers.
//!
//! | stored | the weight `w` becomes | bytes |
//! |---|---|---|
//! | f16, bf16 | `w = Cast(half, to = FLOAT)` | half |
//! | 2 to 7 bits | see [`BlockTensor`]; a step of `isovec-optimize` | the bits, and 2 bytes for 64 values |
//! | int8 | `w = DequantizeLinear(ints, scales, axis)`, no zero point, a scale a channel | a quarter, and 4 a channel |
//!
//! In int8 a channel is an output of the matrix that a `MatMul` or `Gemm` multiplies with, or a row
//! of the table that a `Gather` looks up. Only weights are quantised, never activations: those would
//! need a scale for each token, which the standard operators do not have (`DynamicQuantizeLinear`
//! scales a whole batch at once).
//!
//! The operators that read a weight read `w` as before, and the bundle's
//! [identity](isovec_engine::weights::WeightsIdentity) is that of the original weights.

mod blocks;
mod bytes;
mod error;
mod half;
mod int8;
mod narrow;
mod planes;
mod round;
mod source;
mod tensor;
mod widen;

pub use blocks::in_blocks;
pub use narrow::{NARROWED_KEY, Narrowed, NarrowedWeight, RULES, narrowed};
pub use planes::{
    BITS, BLOCK, BlockTensor, Plane, block_scales, dequantize_blocks, nearest, quantize_blocks,
};
pub use source::floats;
pub use tensor::{PerChannel, QuantizedTensor, dequantize, quantize_weights};
pub use widen::{expanded, widened};
