//! The portable version, for machines without a version of their own.

use super::Simd;

/// One value; never fused, as `mul_add` is a slow function call where there is no instruction.
pub(crate) struct Scalar;

impl Simd for Scalar {
    type V = f32;
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> f32 {
        0.0
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> f32 {
        // SAFETY: the caller's promise.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: f32) {
        // SAFETY: the caller's promise.
        unsafe { *to = value }
    }

    #[inline(always)]
    unsafe fn add(a: f32, b: f32) -> f32 {
        a + b
    }

    #[inline(always)]
    unsafe fn limit(value: f32, least: f32, most: f32) -> f32 {
        let above = if value < least { least } else { value };
        if above > most { most } else { above }
    }

    #[inline(always)]
    unsafe fn add_product<const FUSED: bool>(sum: f32, a: f32, b: f32) -> f32 {
        sum + a * b
    }
}
