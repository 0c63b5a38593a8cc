//! wasm's 128-bit registers.

use std::arch::wasm32::{
    i8x16_shuffle, i16x8_narrow_i32x4, i16x8_splat, i32x4_add, i32x4_dot_i16x8, i32x4_shl,
    i32x4_shr, i32x4_shuffle, i32x4_splat, u8x16_narrow_i16x8, u8x16_swizzle,
    u16x8_extend_high_u8x16, u16x8_extend_low_u8x16, u16x8_shr, v128, v128_and, v128_load,
    v128_load32_splat, v128_store,
};

use super::{Point, SPLIT, Simd, Total, quads_as_pairs};

/// simd128.
pub(crate) struct Wasm;

impl Wasm {
    /// Reads quads as pairs.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn load_quads(from: *const u8) -> [v128; 2] {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        let bytes = unsafe { v128_load(from.cast()) };
        [v128_and(bytes, i16x8_splat(255)), u16x8_shr(bytes, 8)]
    }

    /// Sums without the bits behind the point.
    #[inline(always)]
    fn shifted(Total { low, high }: Total<Self>, point: Point) -> v128 {
        let sum = i32x4_add(low, i32x4_splat(point.half()));
        i32x4_shr(i32x4_add(sum, i32x4_shl(high, SPLIT)), point.bits)
    }
}

impl Simd for Wasm {
    quads_as_pairs!(Self::load_quads);
    type Bytes = v128;
    type Pairs = v128;
    type Sums = v128;
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> v128 {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        unsafe { v128_load(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_bytes(to: *mut u8, bytes: v128) {
        // SAFETY: the caller's promise; wasm stores need no alignment.
        unsafe { v128_store(to.cast(), bytes) }
    }

    #[inline(always)]
    unsafe fn shuffle(bytes: v128, table: v128) -> v128 {
        u8x16_swizzle(bytes, table)
    }

    #[inline(always)]
    unsafe fn zip_dwords(a: v128, b: v128) -> [v128; 2] {
        [
            i32x4_shuffle::<0, 4, 1, 5>(a, b),
            i32x4_shuffle::<2, 6, 3, 7>(a, b),
        ]
    }

    #[inline(always)]
    unsafe fn no_sums() -> v128 {
        i32x4_splat(0)
    }

    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> v128 {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        unsafe { v128_load32_splat(from.cast()) }
    }

    #[inline(always)]
    unsafe fn shuffle_pairs(from: *const u8, _: usize, table: v128) -> v128 {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        unsafe { u8x16_swizzle(v128_load(from.cast()), table) }
    }

    #[inline(always)]
    unsafe fn zip_rows(a: *const u8, b: *const u8) -> [v128; 4] {
        // SAFETY: the caller's promise; wasm loads need no alignment.
        let (a, b) = unsafe { (v128_load(a.cast()), v128_load(b.cast())) };
        let low = i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b);
        let high =
            i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b);
        [
            u16x8_extend_low_u8x16(low),
            u16x8_extend_high_u8x16(low),
            u16x8_extend_low_u8x16(high),
            u16x8_extend_high_u8x16(high),
        ]
    }

    #[inline(always)]
    unsafe fn add_dot(sums: v128, a: v128, b: v128) -> v128 {
        i32x4_add(sums, i32x4_dot_i16x8(a, b))
    }

    #[inline(always)]
    unsafe fn store_lanes(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        let [a, b, c, d] = sums;
        let (a, b) = (Self::shifted(a, point), Self::shifted(b, point));
        let (c, d) = (Self::shifted(c, point), Self::shifted(d, point));
        let (low, high) = (i16x8_narrow_i32x4(a, b), i16x8_narrow_i32x4(c, d));
        // SAFETY: the caller's promise; wasm stores need no alignment.
        unsafe { v128_store(to.cast(), u8x16_narrow_i16x8(low, high)) }
    }

    #[inline(always)]
    unsafe fn store_columns(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: the caller's promise.
        unsafe { Self::store_lanes(to, sums, point) }
    }
}
