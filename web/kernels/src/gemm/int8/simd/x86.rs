//! The 256 and 512-bit registers of x86-64.

use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_mul_ps, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_si256, _mm256_storeu_ps, _mm512_cvtepi8_epi16,
    _mm512_cvtepi32_ps, _mm512_dpwssd_epi32, _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_setzero_si512, _mm512_storeu_ps,
};

use super::Int8Simd;

/// AVX2.
pub(in crate::gemm) struct Avx2;

impl Int8Simd for Avx2 {
    type Sum = __m256i;
    type Weights = __m256i;
    type Pair = __m256i;
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn no_weights() -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn add_dot(sum: __m256i, pair: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_epi32(sum, _mm256_madd_epi16(pair, weights)) }
    }

    #[inline(always)]
    unsafe fn store_scaled(to: *mut f32, sum: __m256i, row: *const f32, columns: *const f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm256_mul_ps(_mm256_set1_ps(*row), _mm256_loadu_ps(columns));
            _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale));
        }
    }
}

/// AVX-512 with VNNI, which adds the pairs of products in one instruction.
pub(in crate::gemm) struct Avx512;

impl Int8Simd for Avx512 {
    type Sum = __m512i;
    type Weights = __m512i;
    type Pair = __m512i;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn no_weights() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn add_dot(sum: __m512i, pair: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpwssd_epi32(sum, pair, weights) }
    }

    #[inline(always)]
    unsafe fn store_scaled(to: *mut f32, sum: __m512i, row: *const f32, columns: *const f32) {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm512_mul_ps(_mm512_set1_ps(*row), _mm512_loadu_ps(columns));
            _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
        }
    }
}
