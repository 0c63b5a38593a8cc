//! The arithmetic of isovec's portable engine.
//!
//! The crate has plain functions over slices: no graphs, no tensor type, and no allocation for the caller. A result
//! depends on the operands alone, except for one rounding: see [`Arithmetic`].
//!
//! # Design
//!
//! **Sums have one order.** The sum of a product runs along `k` from the first element to the last. Other reductions
//! use 16 lanes and a fixed tree. Registers, tiles, threads and the other texts of a batch do not change the order. A
//! text therefore has the same bits alone and in any batch. Between machines one thing differs: whether a product and
//! its sum are rounded once or twice. With `deterministic_compute` they are always rounded twice, and then native
//! x86-64, node, Chromium and Firefox agree to the last bit (`bits.rs` of `isovec-parity` has the hash that the tests
//! compare).
//!
//! **A wasm module finds its fastest tile while it works** (`gemm/choice.rs`). Some kernels give the same bits from the
//! same packed weights. They take turns until one is clearly faster.

mod activation;
mod attention;
mod bag;
mod columns;
pub mod conv;
mod dequantize;
mod embed;
mod error;
pub mod gemm;
mod instructions;
mod math;
mod norm;
pub mod parallel;
mod pool;
mod ragged;
pub mod reduce;
mod rotary;
mod simd;
mod softmax;

pub use activation::Activation;
pub use attention::{Attention, AttentionRun, OffsetBias, Relative, Scratch};
pub use bag::sum_rows;
pub use columns::Columns;
pub use dequantize::{bf16_to_f32, dequantize_columns, dequantize_rows, f16_to_f32};
pub use embed::{Index, Lookup, Table, TableValues, embed};
pub use error::KernelError;
pub use instructions::{instruction_set, instruction_sets};
pub use norm::{Norm, NormKind, l2_normalize};
pub use pool::{Pooling, pool};
pub use rotary::{HeadColumns, Rotary};
pub use softmax::softmax;

/// How products and sums are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// The fastest way on this machine; products and sums may be fused.
    #[default]
    Fast,
    /// The same bits on every machine: products are rounded before they are added.
    Deterministic,
}
