//! The portable version, for machines without a version of their own.

use super::Int8Simd;

/// One column.
pub(in crate::gemm) struct Scalar;

impl Int8Simd for Scalar {
    type Sum = i32;
    type Weights = [i8; 2];
    type Group = [i16; 2];
    const LANES: usize = 1;
    const STEPS: usize = 2;
    const WORDS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> i32 {
        0
    }

    #[inline(always)]
    unsafe fn no_weights() -> [i8; 2] {
        [0; 2]
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> [i8; 2] {
        // SAFETY: the caller's promise.
        unsafe { [*from, *from.add(1)] }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> [i16; 2] {
        // SAFETY: the caller's promise.
        unsafe { [*from, *from.add(1)] }
    }

    #[inline(always)]
    unsafe fn add_dot(sum: i32, pair: [i16; 2], weights: [i8; 2]) -> i32 {
        let product = |at: usize| i32::from(pair[at]) * i32::from(weights[at]);
        sum.wrapping_add(product(0) + product(1))
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sum: i32,
        row: *const f32,
        columns: *const f32,
        _: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let value = sum as f32 * (*row * *columns);
            *to = if adds { *to + value } else { value };
        }
    }
}
