//! wasm's 128-bit registers.

use std::arch::wasm32::{
    f32x4_add, f32x4_mul, f32x4_pmax, f32x4_pmin, f32x4_splat, v128, v128_load, v128_load32_splat,
    v128_store,
};

use super::Simd;

/// simd128; fused where the module is compiled for relaxed-simd and the processor can.
pub(crate) struct Wasm;

impl Simd for Wasm {
    type V = v128;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> v128 {
        f32x4_splat(0.0)
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> v128 {
        // SAFETY: the caller's promise.
        unsafe { v128_load32_splat(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> v128 {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: v128) {
        // SAFETY: the caller's promise; wasm stores need no alignment.
        unsafe { v128_store(to.cast(), value) }
    }

    #[inline(always)]
    unsafe fn add(a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }

    #[inline(always)]
    unsafe fn limit(value: v128, least: v128, most: v128) -> v128 {
        f32x4_pmin(f32x4_pmax(value, least), most)
    }

    #[inline(always)]
    unsafe fn add_product<const FUSED: bool>(sum: v128, a: v128, b: v128) -> v128 {
        #[cfg(target_feature = "relaxed-simd")]
        if FUSED {
            return std::arch::wasm32::f32x4_relaxed_madd(a, b, sum);
        }
        f32x4_add(sum, f32x4_mul(a, b))
    }
}
