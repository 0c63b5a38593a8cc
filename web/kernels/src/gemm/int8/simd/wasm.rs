//! wasm's 128-bit registers.

use std::arch::wasm32::{
    f32x4_add, f32x4_convert_i32x4, f32x4_mul, i16x8_load_extend_i8x8, i32x4_add, i32x4_dot_i16x8,
    i32x4_splat, v128, v128_load, v128_load32_splat, v128_store,
};

use super::Int8Simd;

/// simd128; nothing of relaxed-simd, whose products are of 8 and 7 bits.
pub(in crate::gemm) struct Wasm;

impl Int8Simd for Wasm {
    type Sum = v128;
    type Weights = v128;
    type Group = v128;
    const LANES: usize = 4;
    const STEPS: usize = 2;
    const WORDS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> v128 {
        i32x4_splat(0)
    }

    #[inline(always)]
    unsafe fn no_weights() -> v128 {
        i32x4_splat(0)
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> v128 {
        // SAFETY: the caller's promise.
        unsafe { i16x8_load_extend_i8x8(from) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> v128 {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        unsafe { v128_load32_splat(from.cast()) }
    }

    #[inline(always)]
    unsafe fn add_dot(sum: v128, pair: v128, weights: v128) -> v128 {
        i32x4_add(sum, i32x4_dot_i16x8(pair, weights))
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sum: v128,
        row: *const f32,
        columns: *const f32,
        _: *const i32,
    ) {
        // SAFETY: the caller's promise; wasm loads and stores need no alignment.
        unsafe {
            let scale = f32x4_mul(v128_load32_splat(row.cast()), v128_load(columns.cast()));
            let values = f32x4_mul(f32x4_convert_i32x4(sum), scale);
            let values = match adds {
                true => f32x4_add(v128_load(to.cast()), values),
                false => values,
            };
            v128_store(to.cast(), values);
        }
    }
}
