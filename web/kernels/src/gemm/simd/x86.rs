//! The 256 and 512-bit registers of x86-64.

use std::arch::x86_64::{
    __m256, __m512, __mmask16, _mm256_add_ps, _mm256_broadcast_ss, _mm256_fmadd_ps,
    _mm256_loadu_ps, _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps, _mm256_setzero_ps,
    _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_set1_ps,
    _mm512_setzero_ps, _mm512_storeu_ps,
};

use super::Simd;

/// AVX2 and FMA: 16 registers of 8 lanes.
pub(crate) struct Avx2;

impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    const FINISHES: bool = true;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_broadcast_ss(&*from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m256) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn limit(value: __m256, least: __m256, most: __m256) -> __m256 {
        // SAFETY: the caller's promise. Of a NaN and a number both instructions give the second operand.
        unsafe { _mm256_min_ps(most, _mm256_max_ps(least, value)) }
    }

    #[inline(always)]
    unsafe fn add_product<const FUSED: bool>(sum: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            if FUSED {
                _mm256_fmadd_ps(a, b, sum)
            } else {
                _mm256_add_ps(sum, _mm256_mul_ps(a, b))
            }
        }
    }
}

/// The first `count` of 16 lanes.
#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    ((1_u32 << count) - 1) as __mmask16
}

/// AVX-512F: 32 registers of 16 lanes.
pub(crate) struct Avx512;

impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    const FINISHES: bool = true;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_ps(*from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m512) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const f32, count: usize) -> __m512 {
        // SAFETY: the caller's promise; lanes that are not read are not touched.
        unsafe { _mm512_maskz_loadu_ps(mask(count), from) }
    }

    #[inline(always)]
    unsafe fn store_some(to: *mut f32, value: __m512, count: usize) {
        // SAFETY: the caller's promise; lanes that are not written are not touched.
        unsafe { _mm512_mask_storeu_ps(to, mask(count), value) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn limit(value: __m512, least: __m512, most: __m512) -> __m512 {
        // SAFETY: the caller's promise. Of a NaN and a number both instructions give the second operand.
        unsafe { _mm512_min_ps(most, _mm512_max_ps(least, value)) }
    }

    #[inline(always)]
    unsafe fn add_product<const FUSED: bool>(sum: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            if FUSED {
                _mm512_fmadd_ps(a, b, sum)
            } else {
                _mm512_add_ps(sum, _mm512_mul_ps(a, b))
            }
        }
    }
}
