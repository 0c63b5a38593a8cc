//! The 256 and 512-bit registers of x86-64.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_shuffle_epi8,
    _mm_storeu_si128, _mm_unpackhi_epi32, _mm_unpacklo_epi32, _mm256_add_epi32, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_inserti128_si256,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_packs_epi32, _mm256_packus_epi16,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_sra_epi32,
    _mm256_srli_epi16, _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
    _mm512_add_epi32, _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_dpbusd_epi32,
    _mm512_dpwssd_epi32, _mm512_inserti32x4, _mm512_loadu_si512, _mm512_packs_epi32,
    _mm512_packus_epi16, _mm512_permutexvar_epi32, _mm512_set1_epi32, _mm512_setr_epi32,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_slli_epi32, _mm512_sra_epi32,
    _mm512_storeu_si512, _mm512_unpackhi_epi8, _mm512_unpacklo_epi8,
};

use super::{Point, SPLIT, Simd, Total, quads_as_pairs};

/// AVX2.
pub(crate) struct Avx2;

/// AVX-512 with BW and VNNI.
pub(crate) struct Avx512;

/// What both do with 16 bytes.
macro_rules! sixteen_bytes {
    () => {
        type Bytes = __m128i;

        #[inline(always)]
        unsafe fn load_bytes(from: *const u8) -> __m128i {
            // SAFETY: the caller's promise.
            unsafe { _mm_loadu_si128(from.cast()) }
        }

        #[inline(always)]
        unsafe fn store_bytes(to: *mut u8, bytes: __m128i) {
            // SAFETY: the caller's promise.
            unsafe { _mm_storeu_si128(to.cast(), bytes) }
        }

        #[inline(always)]
        unsafe fn shuffle(bytes: __m128i, table: __m128i) -> __m128i {
            // SAFETY: the caller's promise.
            unsafe { _mm_shuffle_epi8(bytes, table) }
        }

        #[inline(always)]
        unsafe fn zip_dwords(a: __m128i, b: __m128i) -> [__m128i; 2] {
            // SAFETY: the caller's promise.
            unsafe { [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)] }
        }
    };
}

impl Avx2 {
    /// Reads quads as pairs.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn load_quads(from: *const u8) -> [__m256i; 2] {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = _mm256_loadu_si256(from.cast());
            let low = _mm256_and_si256(bytes, _mm256_set1_epi16(255));
            [low, _mm256_srli_epi16::<8>(bytes)]
        }
    }

    /// The bytes of 32 sums, in the order of [`Simd::zip_rows`].
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn bytes(sums: [Total<Self>; 4], point: Point) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let [a, b, c, d] = sums;
            let (a, b) = (Self::shifted(a, point), Self::shifted(b, point));
            let (c, d) = (Self::shifted(c, point), Self::shifted(d, point));
            _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d))
        }
    }

    /// Sums without the bits behind the point.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn shifted(Total { low, high }: Total<Self>, point: Point) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let high = _mm256_slli_epi32::<{ SPLIT as i32 }>(high);
            let sum = _mm256_add_epi32(low, _mm256_set1_epi32(point.half()));
            let sum = _mm256_add_epi32(sum, high);
            _mm256_sra_epi32(sum, _mm_cvtsi32_si128(point.bits as i32))
        }
    }
}

impl Simd for Avx2 {
    sixteen_bytes!();
    quads_as_pairs!(Self::load_quads);
    type Pairs = __m256i;
    type Sums = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn no_sums() -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn shuffle_pairs(from: *const u8, step: usize, table: __m128i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let first = _mm256_castsi128_si256(_mm_loadu_si128(from.cast()));
            let both = _mm256_inserti128_si256::<1>(first, _mm_loadu_si128(from.add(step).cast()));
            _mm256_shuffle_epi8(both, _mm256_broadcastsi128_si256(table))
        }
    }

    #[inline(always)]
    unsafe fn zip_rows(a: *const u8, b: *const u8) -> [__m256i; 4] {
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (_mm256_loadu_si256(a.cast()), _mm256_loadu_si256(b.cast()));
            let zero = _mm256_setzero_si256();
            let (low, high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
            [
                _mm256_unpacklo_epi8(low, zero),
                _mm256_unpackhi_epi8(low, zero),
                _mm256_unpacklo_epi8(high, zero),
                _mm256_unpackhi_epi8(high, zero),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_dot(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }

    #[inline(always)]
    unsafe fn store_lanes(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: the caller's promise.
        unsafe {
            // Packing works within 128 bits, so each register's bytes are in two places, four by four.
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            let bytes = _mm256_permutevar8x32_epi32(Self::bytes(sums, point), order);
            _mm256_storeu_si256(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn store_columns(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_si256(to.cast(), Self::bytes(sums, point)) }
    }
}

impl Avx512 {
    /// The bytes of 64 sums, in the order of [`Simd::zip_rows`].
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn bytes(sums: [Total<Self>; 4], point: Point) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            let [a, b, c, d] = sums;
            let (a, b) = (Self::shifted(a, point), Self::shifted(b, point));
            let (c, d) = (Self::shifted(c, point), Self::shifted(d, point));
            _mm512_packus_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d))
        }
    }

    /// Sums without the bits behind the point.
    ///
    /// # Safety
    /// As for [`Simd`].
    #[inline(always)]
    unsafe fn shifted(Total { low, high }: Total<Self>, point: Point) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            let high = _mm512_slli_epi32::<SPLIT>(high);
            let sum = _mm512_add_epi32(low, _mm512_set1_epi32(point.half()));
            let sum = _mm512_add_epi32(sum, high);
            _mm512_sra_epi32(sum, _mm_cvtsi32_si128(point.bits as i32))
        }
    }
}

impl Simd for Avx512 {
    sixteen_bytes!();
    type Pairs = __m512i;
    type Sums = __m512i;
    /// Of the lowest bytes of weights, the next ones, and the highest.
    type Quads = [__m512i; 3];
    const BYTES: bool = true;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn no_quads() -> [__m512i; 3] {
        // SAFETY: the caller's promise.
        unsafe { [_mm512_setzero_si512(); 3] }
    }

    #[inline(always)]
    unsafe fn add_quads<const WIDE: bool>(
        [low, middle, high]: [__m512i; 3],
        from: *const u8,
        weights: *const i16,
    ) -> [__m512i; 3] {
        // SAFETY: the caller's promise.
        unsafe {
            let bytes = _mm512_loadu_si512(from.cast());
            let low = _mm512_dpbusd_epi32(low, bytes, Self::splat_pair(weights));
            let middle = _mm512_dpbusd_epi32(middle, bytes, Self::splat_pair(weights.add(2)));
            if !WIDE {
                return [low, middle, high];
            }
            let high = _mm512_dpbusd_epi32(high, bytes, Self::splat_pair(weights.add(4)));
            [low, middle, high]
        }
    }

    #[inline(always)]
    unsafe fn total([low, middle, high]: [__m512i; 3]) -> Total<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            Total {
                low: _mm512_add_epi32(low, _mm512_slli_epi32::<8>(middle)),
                high: _mm512_slli_epi32::<{ 16 - SPLIT }>(high),
            }
        }
    }

    #[inline(always)]
    unsafe fn no_sums() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn shuffle_pairs(from: *const u8, step: usize, table: __m128i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            let part = |number: usize| _mm_loadu_si128(from.add(number * step).cast());
            let all = _mm512_castsi128_si512(part(0));
            let all = _mm512_inserti32x4::<1>(all, part(1));
            let all = _mm512_inserti32x4::<2>(all, part(2));
            let all = _mm512_inserti32x4::<3>(all, part(3));
            _mm512_shuffle_epi8(all, _mm512_broadcast_i32x4(table))
        }
    }

    #[inline(always)]
    unsafe fn zip_rows(a: *const u8, b: *const u8) -> [__m512i; 4] {
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (_mm512_loadu_si512(a.cast()), _mm512_loadu_si512(b.cast()));
            let zero = _mm512_setzero_si512();
            let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
            [
                _mm512_unpacklo_epi8(low, zero),
                _mm512_unpackhi_epi8(low, zero),
                _mm512_unpacklo_epi8(high, zero),
                _mm512_unpackhi_epi8(high, zero),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_dot(sums: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpwssd_epi32(sums, a, b) }
    }

    #[inline(always)]
    unsafe fn store_lanes(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: the caller's promise.
        unsafe {
            // As for AVX2, with four places.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let bytes = _mm512_permutexvar_epi32(order, Self::bytes(sums, point));
            _mm512_storeu_si512(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn store_columns(to: *mut u8, sums: [Total<Self>; 4], point: Point) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_si512(to.cast(), Self::bytes(sums, point)) }
    }
}
