//! The registers of each machine, behind one trait.

mod scalar;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use scalar::Scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use wasm::Wasm;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

/// The most lanes of a register.
const MOST_LANES: usize = 16;

/// A register of f32 lanes.
///
/// Every method must be inlined into a function that is compiled for the machine's instructions,
/// as the methods themselves cannot carry that attribute.
///
/// # Safety
///
/// For all methods: the processor has the instructions of the implementation; a pointer to read or
/// write is valid for one value (`splat`), for `LANES` values (`load`, `store`) or for `count` values, aligned as f32.
pub(crate) trait Simd {
    /// The register.
    type V: Copy;
    /// f32 values in a register.
    const LANES: usize;
    /// Whether tiles add the bias and the residual and limit their sums before they store them; else a pass over C does it.
    const FINISHES: bool = false;

    /// All lanes 0.
    unsafe fn zero() -> Self::V;
    /// One value in all lanes.
    unsafe fn splat(from: *const f32) -> Self::V;
    /// `LANES` values.
    unsafe fn load(from: *const f32) -> Self::V;
    /// Writes `LANES` values.
    unsafe fn store(to: *mut f32, value: Self::V);
    /// The first `count` values, at most `LANES`; the other lanes 0. Only those are read.
    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize) -> Self::V {
        let mut all = [0.0; MOST_LANES];
        // SAFETY: the caller's promise; no register has more lanes.
        unsafe {
            std::ptr::copy_nonoverlapping(from, all.as_mut_ptr(), count);
            Self::load(all.as_ptr())
        }
    }
    /// Writes the first `count` values, at most `LANES`, and no others.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, value: Self::V, count: usize) {
        let mut all = [0.0; MOST_LANES];
        // SAFETY: the caller's promise; no register has more lanes.
        unsafe {
            Self::store(all.as_mut_ptr(), value);
            std::ptr::copy_nonoverlapping(all.as_ptr(), to, count);
        }
    }
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `value`, but `least` where it is less, and `most` where it is more. NaN stays NaN.
    unsafe fn limit(value: Self::V, least: Self::V, most: Self::V) -> Self::V;
    /// `sum + a * b`, rounded once if `FUSED` and the machine can, else twice.
    unsafe fn add_product<const FUSED: bool>(sum: Self::V, a: Self::V, b: Self::V) -> Self::V;
}
