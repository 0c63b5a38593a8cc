//! ARM's 128-bit registers, which every 64-bit ARM processor has.

use std::arch::aarch64::{
    float32x4_t, vaddq_f32, vdupq_n_f32, vfmaq_f32, vld1q_dup_f32, vld1q_f32, vmaxq_f32, vminq_f32,
    vmulq_f32, vst1q_f32,
};

use super::Simd;

/// NEON with its fused multiply-add.
pub(crate) struct Neon;

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> float32x4_t {
        // SAFETY: NEON is part of the target.
        unsafe { vdupq_n_f32(0.0) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> float32x4_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vld1q_dup_f32(from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> float32x4_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: float32x4_t) {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vst1q_f32(to, value) }
    }

    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: NEON is part of the target.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn limit(value: float32x4_t, least: float32x4_t, most: float32x4_t) -> float32x4_t {
        // SAFETY: NEON is part of the target.
        unsafe { vminq_f32(vmaxq_f32(value, least), most) }
    }

    #[inline(always)]
    unsafe fn add_product<const FUSED: bool>(
        sum: float32x4_t,
        a: float32x4_t,
        b: float32x4_t,
    ) -> float32x4_t {
        // SAFETY: NEON is part of the target.
        unsafe {
            if FUSED {
                vfmaq_f32(sum, a, b)
            } else {
                vaddq_f32(sum, vmulq_f32(a, b))
            }
        }
    }
}
