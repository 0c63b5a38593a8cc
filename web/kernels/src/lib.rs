//! The arithmetic of isovec's portable engine.
//!
//! Plain functions over slices: no graph, no tensor type, no allocation that is not the caller's.
//! Every kernel adds in one fixed order, whatever the width of the machine's registers and however
//! the work is split, so that a result depends on its operands alone. What may differ between
//! machines is one thing: whether a product and its sum are rounded once (fused) or twice. Where
//! [`Arithmetic::Deterministic`] is asked for, it is always twice.

mod activation;
mod attention;
mod columns;
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
pub use attention::{Attention, AttentionRun, OffsetBias, Scratch};
pub use columns::Columns;
pub use dequantize::{bf16_to_f32, dequantize_columns, dequantize_rows, f16_to_f32};
pub use embed::{Index, Lookup, Table, TableValues, embed};
pub use error::KernelError;
pub use instructions::{instruction_set, instruction_sets};
pub use norm::{Norm, NormKind, l2_normalize};
pub use pool::{Pooling, pool};
pub use rotary::{HeadColumns, Rotary};
pub use softmax::softmax;

/// How products are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arithmetic {
    /// The machine's fastest way; products and sums may be fused.
    #[default]
    Fast,
    /// The same bits on every machine: products are rounded before they are added.
    Deterministic,
}
