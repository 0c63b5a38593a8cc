//! The 256 and 512-bit registers of x86-64.

#[cfg(test)]
use std::arch::x86_64::_mm256_dpbusd_epi32;
use std::arch::x86_64::{
    __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps,
    _mm256_dpbusd_avx_epi32, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_mul_ps,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_si256, _mm256_slli_epi32, _mm256_storeu_ps,
    _mm256_sub_epi32, _mm512_add_epi32, _mm512_cvtepi8_epi16, _mm512_cvtepi32_ps,
    _mm512_dpbusd_epi32, _mm512_dpwssd_epi32, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_storeu_ps,
    _mm512_sub_epi32,
};

use super::Int8Simd;

/// AVX2.
pub(in crate::gemm) struct Avx2;

impl Int8Simd for Avx2 {
    type Sum = __m256i;
    type Weights = __m256i;
    type Group = __m256i;
    const LANES: usize = 8;
    const STEPS: usize = 2;

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
        sum: __m256i,
        row: *const f32,
        columns: *const f32,
        _: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm256_mul_ps(_mm256_set1_ps(*row), _mm256_loadu_ps(columns));
            _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(sum), scale));
        }
    }
}

/// AVX-512 with VNNI, which adds pairs of products in one instruction.
pub(in crate::gemm) struct Avx512;

impl Int8Simd for Avx512 {
    type Sum = __m512i;
    type Weights = __m512i;
    type Group = __m512i;
    const LANES: usize = 16;
    const STEPS: usize = 2;

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
    unsafe fn store_scaled(
        to: *mut f32,
        sum: __m512i,
        row: *const f32,
        columns: *const f32,
        _: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let scale = _mm512_mul_ps(_mm512_set1_ps(*row), _mm512_loadu_ps(columns));
            _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale));
        }
    }
}

/// AVX-512 with VNNI, by bytes: weights are multiplied as they are stored, once by the high bytes
/// of activations and once by the low ones.
pub(in crate::gemm) struct Avx512Bytes;

impl Int8Simd for Avx512Bytes {
    /// Of high bytes and of low ones.
    type Sum = [__m512i; 2];
    type Weights = __m512i;
    type Group = [__m512i; 2];
    const LANES: usize = 16;
    const STEPS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe { [_mm512_setzero_si512(); 2] }
    }

    #[inline(always)]
    unsafe fn no_weights() -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i8) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn splat(from: *const i16) -> [__m512i; 2] {
        // SAFETY: the caller's promise: four values take 8 bytes.
        unsafe {
            let from = from.cast::<i32>();
            [
                _mm512_set1_epi32(from.read_unaligned()),
                _mm512_set1_epi32(from.add(1).read_unaligned()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_dot(
        [high, low]: [__m512i; 2],
        [high_bytes, low_bytes]: [__m512i; 2],
        weights: __m512i,
    ) -> [__m512i; 2] {
        // SAFETY: the caller's promise.
        unsafe {
            [
                _mm512_dpbusd_epi32(high, high_bytes, weights),
                _mm512_dpbusd_epi32(low, low_bytes, weights),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_scaled(
        to: *mut f32,
        [high, low]: [__m512i; 2],
        row: *const f32,
        columns: *const f32,
        weights: *const i32,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            // Every weight was multiplied by 32768 too much.
            let surplus = _mm512_slli_epi32::<15>(_mm512_loadu_si512(weights.cast()));
            let sum = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low);
            let sum = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, surplus));
            let scale = _mm512_mul_ps(_mm512_set1_ps(*row), _mm512_loadu_ps(columns));
            _mm512_storeu_ps(to, _mm512_mul_ps(sum, scale));
        }
    }
}

/// 256-bit registers with VNNI, by bytes, as above.
macro_rules! bytes_256 {
    ($(#[$attribute:meta])* $name:ident, $dot:ident) => {
        $(#[$attribute])*
        pub(in crate::gemm) struct $name;

        impl Int8Simd for $name {
            /// Of high bytes and of low ones.
            type Sum = [__m256i; 2];
            type Weights = __m256i;
            type Group = [__m256i; 2];
            const LANES: usize = 8;
            const STEPS: usize = 4;

            #[inline(always)]
            unsafe fn zero() -> [__m256i; 2] {
                // SAFETY: the caller's promise.
                unsafe { [_mm256_setzero_si256(); 2] }
            }

            #[inline(always)]
            unsafe fn no_weights() -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { _mm256_setzero_si256() }
            }

            #[inline(always)]
            unsafe fn load(from: *const i8) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { _mm256_loadu_si256(from.cast()) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const i16) -> [__m256i; 2] {
                // SAFETY: the caller's promise: four values take 8 bytes.
                unsafe {
                    let from = from.cast::<i32>();
                    [
                        _mm256_set1_epi32(from.read_unaligned()),
                        _mm256_set1_epi32(from.add(1).read_unaligned()),
                    ]
                }
            }

            #[inline(always)]
            unsafe fn add_dot(
                [high, low]: [__m256i; 2],
                [high_bytes, low_bytes]: [__m256i; 2],
                weights: __m256i,
            ) -> [__m256i; 2] {
                // SAFETY: the caller's promise.
                unsafe { [$dot(high, high_bytes, weights), $dot(low, low_bytes, weights)] }
            }

            #[inline(always)]
            unsafe fn store_scaled(
                to: *mut f32,
                [high, low]: [__m256i; 2],
                row: *const f32,
                columns: *const f32,
                weights: *const i32,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    let surplus = _mm256_slli_epi32::<15>(_mm256_loadu_si256(weights.cast()));
                    let sum = _mm256_add_epi32(_mm256_slli_epi32::<8>(high), low);
                    let sum = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, surplus));
                    let scale = _mm256_mul_ps(_mm256_set1_ps(*row), _mm256_loadu_ps(columns));
                    _mm256_storeu_ps(to, _mm256_mul_ps(sum, scale));
                }
            }
        }
    };
}

bytes_256! {
    /// AVX-VNNI, which Intel's processors without AVX-512 have.
    AvxVnni, _mm256_dpbusd_avx_epi32
}

#[cfg(test)]
bytes_256! {
    /// The same in the encoding of AVX-512, which processors have that lack AVX-VNNI's: so that its
    /// arithmetic is tested there, too.
    Avx512Vnni256, _mm256_dpbusd_epi32
}
