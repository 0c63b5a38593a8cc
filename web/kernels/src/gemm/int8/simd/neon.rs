//! ARM's 128-bit registers.

use std::arch::aarch64::{
    int8x16_t, int16x8_t, int32x4_t, vaddq_f32, vaddq_s32, vcvtq_f32_s32, vdupq_n_s8, vdupq_n_s16,
    vdupq_n_s32, vget_low_s16, vld1_s8, vld1q_f32, vld1q_s8, vld1q_s32, vmlal_high_s16, vmlal_s16,
    vmovl_s8, vmulq_f32, vmulq_n_f32, vpaddq_s32, vreinterpretq_s8_s32, vreinterpretq_s16_s32,
    vshlq_n_s32, vst1q_f32,
};

use core::arch::asm;

use super::{Dots, Int8Simd};

/// NEON: the products of even and odd steps have sums of their own, which are added in the end.
pub(in crate::gemm) struct Neon;

/// Writes or adds 4 sums times their scales.
///
/// # Safety
///
/// As for [`Int8Simd::store_scaled`].
#[inline(always)]
unsafe fn store(to: *mut f32, adds: bool, sums: int32x4_t, row: *const f32, columns: *const f32) {
    // SAFETY: NEON is part of the target; the pointers are the caller's promise.
    unsafe {
        let scale = vmulq_n_f32(vld1q_f32(columns), *row);
        let values = vmulq_f32(vcvtq_f32_s32(sums), scale);
        let values = match adds {
            true => vaddq_f32(vld1q_f32(to), values),
            false => values,
        };
        vst1q_f32(to, values);
    }
}

impl Int8Simd for Neon {
    /// Even and odd steps in turn, of the first two columns and of the last two.
    type Sum = [int32x4_t; 2];
    type Weights = int16x8_t;
    type Group = int16x8_t;
    const LANES: usize = 4;
    const STEPS: usize = 2;
    const WORDS: usize = 2;

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
        adds: bool,
        [first, last]: [int32x4_t; 2],
        row: *const f32,
        columns: *const f32,
        _: *const i32,
    ) {
        // SAFETY: NEON is part of the target; the pointers are the caller's promise.
        unsafe { store(to, adds, vpaddq_s32(first, last), row, columns) }
    }
}

/// NEON with its dot products of bytes, which most 64-bit ARM processors since 2018 have.
pub(in crate::gemm) struct NeonDot;

/// Adds to each sum the four products of its bytes.
///
/// # Safety
///
/// The processor has the instruction.
#[inline(always)]
unsafe fn dot(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // The intrinsic is not stable (<https://github.com/rust-lang/rust/issues/117224>).
    // SAFETY: the caller's promise; it reads and writes nothing but these registers.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

impl Dots for NeonDot {
    type Sums = int32x4_t;
    type Bytes = int8x16_t;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn no_sums() -> int32x4_t {
        // SAFETY: NEON is part of the target.
        unsafe { vdupq_n_s32(0) }
    }

    #[inline(always)]
    unsafe fn no_bytes() -> int8x16_t {
        // SAFETY: NEON is part of the target.
        unsafe { vdupq_n_s8(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> int8x16_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vld1q_s8(from) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> int8x16_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vreinterpretq_s8_s32(vdupq_n_s32(from.cast::<i32>().read_unaligned())) }
    }

    #[inline(always)]
    unsafe fn add_dot(sums: int32x4_t, bytes: int8x16_t, weights: int8x16_t) -> int32x4_t {
        // SAFETY: the caller's promise.
        unsafe { dot(sums, weights, bytes) }
    }

    #[inline(always)]
    unsafe fn of_wide(high: int32x4_t, low: int32x4_t, weights: *const i32) -> int32x4_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe {
            // Every weight was multiplied by 128 too little.
            let missing = vshlq_n_s32::<7>(vld1q_s32(weights));
            vaddq_s32(vaddq_s32(vshlq_n_s32::<8>(high), low), missing)
        }
    }

    /// Signed bytes have no offset.
    #[inline(always)]
    unsafe fn of_eight(sums: int32x4_t, _: *const i32) -> int32x4_t {
        sums
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sums: int32x4_t,
        row: *const f32,
        columns: *const f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe { store(to, adds, sums, row, columns) }
    }
}
