//! ARM's 128-bit registers.

use std::arch::aarch64::{
    int16x8_t, int32x4_t, vcvtq_f32_s32, vdupq_n_s16, vdupq_n_s32, vget_low_s16, vld1_s8,
    vld1q_f32, vmlal_high_s16, vmlal_s16, vmovl_s8, vmulq_f32, vmulq_n_f32, vpaddq_s32,
    vreinterpretq_s16_s32, vst1q_f32,
};

use super::Int8Simd;

/// NEON: the products of even and odd steps have sums of their own, which are added in the end.
pub(in crate::gemm) struct Neon;

impl Int8Simd for Neon {
    /// Even and odd steps in turn, of the first two columns and of the last two.
    type Sum = [int32x4_t; 2];
    type Weights = int16x8_t;
    type Pair = int16x8_t;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> [int32x4_t; 2] {
        // SAFETY: NEON is part of the target.
        unsafe { [vdupq_n_s32(0); 2] }
    }

    #[inline(always)]
    unsafe fn no_weights() -> int16x8_t {
        // SAFETY: NEON is part of the target.
        unsafe { vdupq_n_s16(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> int16x8_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vmovl_s8(vld1_s8(from)) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> int16x8_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vreinterpretq_s16_s32(vdupq_n_s32(from.cast::<i32>().read_unaligned())) }
    }

    #[inline(always)]
    unsafe fn add_dot(
        [first, last]: [int32x4_t; 2],
        pair: int16x8_t,
        weights: int16x8_t,
    ) -> [int32x4_t; 2] {
        // SAFETY: NEON is part of the target.
        unsafe {
            [
                vmlal_s16(first, vget_low_s16(weights), vget_low_s16(pair)),
                vmlal_high_s16(last, weights, pair),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        [first, last]: [int32x4_t; 2],
        row: *const f32,
        columns: *const f32,
    ) {
        // SAFETY: NEON is part of the target; the pointers are the caller's promise.
        unsafe {
            let scale = vmulq_n_f32(vld1q_f32(columns), *row);
            let sum = vcvtq_f32_s32(vpaddq_s32(first, last));
            vst1q_f32(to, vmulq_f32(sum, scale));
        }
    }
}
