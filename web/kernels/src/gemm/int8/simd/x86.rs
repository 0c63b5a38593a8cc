//! The 256 and 512-bit registers of x86-64.

#[cfg(test)]
use std::arch::x86_64::_mm256_dpbusd_epi32;
use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi32, _mm256_add_ps, _mm256_cvtepi8_epi16,
    _mm256_cvtepi32_ps, _mm256_dpbusd_avx_epi32, _mm256_loadu_ps, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_mul_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_si256,
    _mm256_slli_epi32, _mm256_storeu_ps, _mm256_sub_epi32, _mm512_add_epi32, _mm512_add_ps,
    _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_storeu_ps,
    _mm512_sub_epi32,
};

use super::{Dots, Int8Simd};

/// AVX2.
pub(in crate::gemm) struct Avx2;

/// Writes or adds 8 sums times their scales.
///
/// # Safety
///
/// As for [`Int8Simd::store_scaled`].
#[inline(always)]
unsafe fn store_256(to: *mut f32, adds: bool, sums: __m256i, row: *const f32, columns: *const f32) {
    // SAFETY: the caller's promise.
    unsafe {
        let scale = _mm256_mul_ps(_mm256_set1_ps(*row), _mm256_loadu_ps(columns));
        let values = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scale);
        let values = match adds {
            true => _mm256_add_ps(_mm256_loadu_ps(to), values),
            false => values,
        };
        _mm256_storeu_ps(to, values);
    }
}

impl Int8Simd for Avx2 {
    type Sum = __m256i;
    type Weights = __m256i;
    type Group = __m256i;
    const LANES: usize = 8;
    const STEPS: usize = 2;
    const WORDS: usize = 2;

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
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sum: __m256i,
        row: *const f32,
        columns: *const f32,
        _: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe { store_256(to, adds, sum, row, columns) }
    }
}

/// AVX-512 with VNNI.
pub(in crate::gemm) struct Avx512Vnni;

impl Dots for Avx512Vnni {
    type Sums = __m512i;
    type Bytes = __m512i;
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn no_sums() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn no_bytes() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn add_dot(sums: __m512i, bytes: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpbusd_epi32(sums, bytes, weights) }
    }

    #[inline(always)]
    unsafe fn of_wide(high: __m512i, low: __m512i, weights: *const i32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            // Every weight was multiplied by 32768 too much.
            let surplus = _mm512_slli_epi32::<15>(_mm512_loadu_si512(weights.cast()));
            let sums = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low);
            _mm512_sub_epi32(sums, surplus)
        }
    }

    #[inline(always)]
    unsafe fn of_eight(sums: __m512i, weights: *const i32) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe {
            // Every weight was multiplied by 128 too much.
            let surplus = _mm512_slli_epi32::<7>(_mm512_loadu_si512(weights.cast()));
            _mm512_sub_epi32(sums, surplus)
        }
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        adds: bool,
        sums: __m512i,
        row: *const f32,
        columns: *const f32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm512_mul_ps(_mm512_set1_ps(*row), _mm512_loadu_ps(columns));
            let values = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scale);
            let values = match adds {
                true => _mm512_add_ps(_mm512_loadu_ps(to), values),
                false => values,
            };
            _mm512_storeu_ps(to, values);
        }
    }
}

/// 256-bit registers with VNNI.
macro_rules! vnni_256 {
    ($(#[$attribute:meta])* $name:ident, $dot:ident) => {
        $(#[$attribute])*
        pub(in crate::gemm) struct $name;

        impl Dots for $name {
            type Sums = __m256i;
            type Bytes = __m256i;
            const LANES: usize = 8;

            #[inline(always)]
            unsafe fn no_sums() -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { _mm256_setzero_si256() }
            }

            #[inline(always)]
            unsafe fn no_bytes() -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { _mm256_setzero_si256() }
            }

            #[inline(always)]
            unsafe fn load(from: *const i8) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { _mm256_loadu_si256(from.cast()) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const i16) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
            }

            #[inline(always)]
            unsafe fn add_dot(sums: __m256i, bytes: __m256i, weights: __m256i) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { $dot(sums, bytes, weights) }
            }

            #[inline(always)]
            unsafe fn of_wide(high: __m256i, low: __m256i, weights: *const i32) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe {
                    let surplus = _mm256_slli_epi32::<15>(_mm256_loadu_si256(weights.cast()));
                    let sums = _mm256_add_epi32(_mm256_slli_epi32::<8>(high), low);
                    _mm256_sub_epi32(sums, surplus)
                }
            }

            #[inline(always)]
            unsafe fn of_eight(sums: __m256i, weights: *const i32) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe {
                    let surplus = _mm256_slli_epi32::<7>(_mm256_loadu_si256(weights.cast()));
                    _mm256_sub_epi32(sums, surplus)
                }
            }

            #[inline(always)]
            unsafe fn store_scaled(
                to: *mut f32,
                adds: bool,
                sums: __m256i,
                row: *const f32,
                columns: *const f32,
            ) {
                // SAFETY: the caller's promise.
                unsafe { store_256(to, adds, sums, row, columns) }
            }
        }
    };
}

vnni_256! {
    /// AVX-VNNI, which Intel's processors without AVX-512 have.
    AvxVnni, _mm256_dpbusd_avx_epi32
}

#[cfg(test)]
vnni_256! {
    /// The same in the encoding of AVX-512, which processors have that lack AVX-VNNI's: so that its
    /// arithmetic is tested there, too.
    Avx512Vnni256, _mm256_dpbusd_epi32
}
