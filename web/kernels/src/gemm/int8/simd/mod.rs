//! The registers of each machine, for whole numbers.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod bytes;
mod scalar;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(in crate::gemm) use bytes::{Dots, Eight, Wide};
#[cfg(target_arch = "aarch64")]
pub(in crate::gemm) use neon::{Neon, NeonDot};
pub(in crate::gemm) use scalar::Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(in crate::gemm) use wasm::Wasm;
#[cfg(all(test, target_arch = "x86_64"))]
pub(in crate::gemm) use x86::Avx512Vnni256;
#[cfg(target_arch = "x86_64")]
pub(in crate::gemm) use x86::{Avx2, Avx512Vnni, AvxVnni};

/// Sums of 32 bits, one for each column, to which groups of products are added.
///
/// As with f32, every method must be inlined into a function compiled for the machine.
///
/// # Safety
///
/// For all methods: the processor has the instructions of the implementation; pointers are valid
/// for what the method says, aligned as their type.
pub(in crate::gemm) trait Int8Simd {
    /// The sums of `LANES` columns.
    type Sum: Copy;
    /// Groups of weights of `LANES` columns.
    type Weights: Copy;
    /// A group of activations, for every column.
    type Group: Copy;
    /// Columns at a time.
    const LANES: usize;
    /// Steps of a group: those of the kernel's [`Form`](super::form::Form).
    const STEPS: usize;
    /// Words of 16 bits that hold a group of activations.
    const WORDS: usize;

    /// Sums of 0.
    unsafe fn zero() -> Self::Sum;
    /// Weights of 0.
    unsafe fn no_weights() -> Self::Weights;
    /// Reads `STEPS * LANES` weights.
    unsafe fn load(from: *const i8) -> Self::Weights;
    /// Reads `STEPS` activations, `WORDS` words.
    unsafe fn splat(from: *const i16) -> Self::Group;
    /// Adds the products of every column to its sum.
    unsafe fn add_dot(sum: Self::Sum, group: Self::Group, weights: Self::Weights) -> Self::Sum;
    /// Writes `f32(sum) * (row * column)` to `LANES` values, or adds that to them, reading one scale
    /// of a row, `LANES` scales of columns and, where activations have an offset, as many sums of
    /// weights.
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sum: Self::Sum,
        row: *const f32,
        columns: *const f32,
        weights: *const i32,
    );
}
