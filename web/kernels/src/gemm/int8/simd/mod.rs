//! The registers of each machine, for whole numbers.

mod scalar;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(in crate::gemm) use neon::{Neon, NeonDot};
pub(in crate::gemm) use scalar::Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(in crate::gemm) use wasm::Wasm;
#[cfg(all(test, target_arch = "x86_64"))]
pub(in crate::gemm) use x86::Avx512Vnni256;
#[cfg(target_arch = "x86_64")]
pub(in crate::gemm) use x86::{Avx2, Avx512, Avx512Bytes, AvxVnni};

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

    /// Sums of 0.
    unsafe fn zero() -> Self::Sum;
    /// Weights of 0.
    unsafe fn no_weights() -> Self::Weights;
    /// Reads `STEPS * LANES` weights.
    unsafe fn load(from: *const i8) -> Self::Weights;
    /// Reads `STEPS` activations.
    unsafe fn splat(from: *const i16) -> Self::Group;
    /// Adds the products of every column to its sum.
    unsafe fn add_dot(sum: Self::Sum, group: Self::Group, weights: Self::Weights) -> Self::Sum;
    /// Writes `f32(sum) * (row * column)` to `LANES` values, reading one scale of a row, and
    /// `LANES` scales of columns and sums of their weights.
    unsafe fn store_scaled(
        to: *mut f32,
        sum: Self::Sum,
        row: *const f32,
        columns: *const f32,
        weights: *const i32,
    );
}
