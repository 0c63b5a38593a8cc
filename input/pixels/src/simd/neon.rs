//! ARM's 128-bit registers.

use std::arch::aarch64::{
    int16x4_t, int16x8_t, int32x4_t, uint8x16_t, vaddq_s32, vandq_u16, vcombine_s16, vdupq_n_s32,
    vdupq_n_u16, vget_low_s16, vget_low_u8, vld1q_u8, vmlal_high_s16, vmlal_s16, vmovl_high_u8,
    vmovl_u8, vpaddq_s32, vqmovn_s32, vqmovun_s16, vqtbl1q_u8, vreinterpretq_s16_s32,
    vreinterpretq_s16_u8, vreinterpretq_s16_u16, vreinterpretq_u8_u32, vreinterpretq_u16_u8,
    vreinterpretq_u32_u8, vshlq_n_s32, vshlq_s32, vshrq_n_u16, vst1_u8, vst1q_u8, vzip1q_u8,
    vzip1q_u32, vzip2q_u8, vzip2q_u32,
};

use super::{Point, SPLIT, Simd, Total, quads_as_pairs};

/// NEON: the products of a pair have sums of their own, which are added in the end.
pub(crate) struct Neon;

impl Neon {
    /// Reads quads as pairs.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn load_quads(from: *const u8) -> [int16x8_t; 2] {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe {
            let words = vreinterpretq_u16_u8(vld1q_u8(from));
            [
                vreinterpretq_s16_u16(vandq_u16(words, vdupq_n_u16(255))),
                vreinterpretq_s16_u16(vshrq_n_u16::<8>(words)),
            ]
        }
    }

    /// Sums without the bits behind the point, ended where 16 bits end.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn shifted(Total { low, high }: Total<Self>, point: Point) -> int16x4_t {
        // SAFETY: NEON is part of the target.
        unsafe {
            let high = vshlq_n_s32::<{ SPLIT as i32 }>(vpaddq_s32(high[0], high[1]));
            let sum = vaddq_s32(vpaddq_s32(low[0], low[1]), vdupq_n_s32(point.half()));
            // To the left by less than nothing is to the right.
            let bits = vdupq_n_s32(-(point.bits as i32));
            vqmovn_s32(vshlq_s32(vaddq_s32(sum, high), bits))
        }
    }
}

impl Simd for Neon {
    quads_as_pairs!(Self::load_quads);
    type Bytes = uint8x16_t;
    type Pairs = int16x8_t;
    /// First and second of a pair in turn, of the first two lanes and of the last two.
    type Sums = [int32x4_t; 2];
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> uint8x16_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store_bytes(to: *mut u8, bytes: uint8x16_t) {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vst1q_u8(to, bytes) }
    }

    #[inline(always)]
    unsafe fn shuffle(bytes: uint8x16_t, table: uint8x16_t) -> uint8x16_t {
        // SAFETY: NEON is part of the target.
        unsafe { vqtbl1q_u8(bytes, table) }
    }

    #[inline(always)]
    unsafe fn zip_dwords(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: NEON is part of the target.
        unsafe {
            let (a, b) = (vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b));
            [
                vreinterpretq_u8_u32(vzip1q_u32(a, b)),
                vreinterpretq_u8_u32(vzip2q_u32(a, b)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn no_sums() -> [int32x4_t; 2] {
        // SAFETY: NEON is part of the target.
        unsafe { [vdupq_n_s32(0); 2] }
    }

    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> int16x8_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vreinterpretq_s16_s32(vdupq_n_s32(from.cast::<i32>().read_unaligned())) }
    }

    #[inline(always)]
    unsafe fn shuffle_pairs(from: *const u8, _: usize, table: uint8x16_t) -> int16x8_t {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe { vreinterpretq_s16_u8(vqtbl1q_u8(vld1q_u8(from), table)) }
    }

    #[inline(always)]
    unsafe fn zip_rows(a: *const u8, b: *const u8) -> [int16x8_t; 4] {
        // SAFETY: NEON is part of the target; the pointers are the caller's promise.
        unsafe {
            let (a, b) = (vld1q_u8(a), vld1q_u8(b));
            let (low, high) = (vzip1q_u8(a, b), vzip2q_u8(a, b));
            [
                vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(low))),
                vreinterpretq_s16_u16(vmovl_high_u8(low)),
                vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(high))),
                vreinterpretq_s16_u16(vmovl_high_u8(high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_dot([first, last]: [int32x4_t; 2], a: int16x8_t, b: int16x8_t) -> [int32x4_t; 2] {
        // SAFETY: NEON is part of the target.
        unsafe {
            [
                vmlal_s16(first, vget_low_s16(a), vget_low_s16(b)),
                vmlal_high_s16(last, a, b),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_lanes(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: NEON is part of the target; the pointer is the caller's promise.
        unsafe {
            let [a, b, c, d] = sums;
            let (a, b) = (Self::shifted(a, point), Self::shifted(b, point));
            let (c, d) = (Self::shifted(c, point), Self::shifted(d, point));
            vst1_u8(to, vqmovun_s16(vcombine_s16(a, b)));
            vst1_u8(to.add(8), vqmovun_s16(vcombine_s16(c, d)));
        }
    }

    #[inline(always)]
    unsafe fn store_columns(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: the caller's promise.
        unsafe { Self::store_lanes(to, sums, point) }
    }
}
