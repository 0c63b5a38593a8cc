//! Products of small matrices that stand in panels.
//!
//! The compiler makes vector code of the portable version for registers of 128 bits; for wider
//! ones it is written out.

use super::transpose::Rows;

/// A way to multiply panels.
pub(super) trait Tile<const M: usize, const N: usize>: Copy {
    /// The product of a panel `[depth, M]`, transposed, and a panel `[depth, N]`: every element is
    /// one sum in order of depth.
    fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; N]; M];

    /// As [`Rows::transpose`].
    #[inline(always)]
    fn transpose(self, rows: &Rows<'_>, factor: f32, length: usize, to: &mut [f32]) {
        rows.transpose(factor, length, to);
    }
}

/// On any machine; a product is rounded before it is added.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl<const M: usize, const N: usize> Tile<M, N> for Portable {
    #[inline(always)]
    fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; N]; M] {
        let mut sums = [[0.0; N]; M];
        let (a, _) = a.as_chunks::<M>();
        let (b, _) = b.as_chunks::<N>();
        for (a, b) in a.iter().zip(b) {
            for (sums, a) in sums.iter_mut().zip(a) {
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
        }
        sums
    }
}

/// With fused products and sums, where every processor of the target has them.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy)]
pub(super) struct Fused;

#[cfg(target_arch = "aarch64")]
impl<const M: usize, const N: usize> Tile<M, N> for Fused {
    #[inline(always)]
    fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; N]; M] {
        let mut sums = [[0.0; N]; M];
        let (a, _) = a.as_chunks::<M>();
        let (b, _) = b.as_chunks::<N>();
        for (a, b) in a.iter().zip(b) {
            for (sums, a) in sums.iter_mut().zip(a) {
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = a.mul_add(*b, *sum);
                }
            }
        }
        sums
    }
}

/// With the browser's relaxed instruction, which is fused where the processor can.
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
#[derive(Clone, Copy)]
pub(super) struct Relaxed;

#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
impl<const M: usize> Tile<M, 8> for Relaxed {
    #[inline(always)]
    fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; 8]; M] {
        use core::arch::wasm32::{
            f32x4, f32x4_extract_lane, f32x4_relaxed_madd, f32x4_splat, v128,
        };

        let lanes = |v: v128| {
            [
                f32x4_extract_lane::<0>(v),
                f32x4_extract_lane::<1>(v),
                f32x4_extract_lane::<2>(v),
                f32x4_extract_lane::<3>(v),
            ]
        };
        let mut sums = [[f32x4_splat(0.0); 2]; M];
        let (a, _) = a.as_chunks::<M>();
        let (b, _) = b.as_chunks::<8>();
        for (a, b) in a.iter().zip(b) {
            let b = [f32x4(b[0], b[1], b[2], b[3]), f32x4(b[4], b[5], b[6], b[7])];
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = f32x4_splat(*a);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = f32x4_relaxed_madd(a, b, *sum);
                }
            }
        }
        sums.map(|[low, high]| {
            let mut row = [0.0; 8];
            row[..4].copy_from_slice(&lanes(low));
            row[4..].copy_from_slice(&lanes(high));
            row
        })
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use core::arch::x86_64::{
        __m256, __m512, _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
        _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps,
        _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::{Rows, Tile};
    use crate::attention::transpose::x86::transpose;
    use crate::simd::{Level, level};

    /// With AVX-512; there is one only where the processor has it.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512<const FUSED: bool>(());

    /// With AVX2 and FMA; there is one only where the processor has them.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2<const FUSED: bool>(());

    impl<const FUSED: bool> Avx512<FUSED> {
        /// Asks the processor.
        pub(in super::super) fn new() -> Option<Self> {
            (level() == Level::Avx512).then_some(Self(()))
        }
    }

    impl<const FUSED: bool> Avx2<FUSED> {
        /// Asks the processor.
        pub(in super::super) fn new() -> Option<Self> {
            (level() != Level::Sse2).then_some(Self(()))
        }
    }

    impl<const M: usize, const FUSED: bool> Tile<M, 16> for Avx512<FUSED> {
        #[inline(always)]
        fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; 16]; M] {
            // SAFETY: `new` saw that the processor has the features; there are 16 lanes.
            unsafe { avx512::<M, 16, 1, FUSED>(a, b) }
        }

        #[inline(always)]
        fn transpose(self, rows: &Rows<'_>, factor: f32, length: usize, to: &mut [f32]) {
            // SAFETY: `new` saw that the processor has the features.
            unsafe { transpose(rows, factor, length, to) };
        }
    }

    impl<const M: usize, const FUSED: bool> Tile<M, 32> for Avx512<FUSED> {
        #[inline(always)]
        fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; 32]; M] {
            // SAFETY: `new` saw that the processor has the features; there are 32 lanes.
            unsafe { avx512::<M, 32, 2, FUSED>(a, b) }
        }

        #[inline(always)]
        fn transpose(self, rows: &Rows<'_>, factor: f32, length: usize, to: &mut [f32]) {
            // SAFETY: `new` saw that the processor has the features.
            unsafe { transpose(rows, factor, length, to) };
        }
    }

    impl<const M: usize, const FUSED: bool> Tile<M, 16> for Avx2<FUSED> {
        #[inline(always)]
        fn multiply(self, a: &[f32], b: &[f32]) -> [[f32; 16]; M] {
            // SAFETY: `new` saw that the processor has the features.
            unsafe { avx2::<M, FUSED>(a, b) }
        }

        #[inline(always)]
        fn transpose(self, rows: &Rows<'_>, factor: f32, length: usize, to: &mut [f32]) {
            // SAFETY: `new` saw that the processor has the features.
            unsafe { transpose(rows, factor, length, to) };
        }
    }

    /// # Safety
    ///
    /// `N` is `V` registers of 16 lanes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn avx512<const M: usize, const N: usize, const V: usize, const FUSED: bool>(
        a: &[f32],
        b: &[f32],
    ) -> [[f32; N]; M] {
        let mut sums: [[__m512; V]; M] = [[_mm512_setzero_ps(); V]; M];
        let (a, _) = a.as_chunks::<M>();
        let (b, _) = b.as_chunks::<N>();
        for (a, b) in a.iter().zip(b) {
            let b: [__m512; V] = std::array::from_fn(|v| {
                // SAFETY: `b` is V registers.
                unsafe { _mm512_loadu_ps(b.as_ptr().add(16 * v)) }
            });
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = _mm512_set1_ps(*a);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = if FUSED {
                        _mm512_fmadd_ps(a, b, *sum)
                    } else {
                        _mm512_add_ps(*sum, _mm512_mul_ps(a, b))
                    };
                }
            }
        }
        let mut out = [[0.0; N]; M];
        for (out, sums) in out.iter_mut().zip(sums) {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: `out` is V registers.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr().add(16 * v), sum) };
            }
        }
        out
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<const M: usize, const FUSED: bool>(a: &[f32], b: &[f32]) -> [[f32; 16]; M] {
        let mut sums: [[__m256; 2]; M] = [[_mm256_setzero_ps(); 2]; M];
        let (a, _) = a.as_chunks::<M>();
        let (b, _) = b.as_chunks::<16>();
        for (a, b) in a.iter().zip(b) {
            // SAFETY: `b` is 16 elements.
            let b = unsafe {
                [
                    _mm256_loadu_ps(b.as_ptr()),
                    _mm256_loadu_ps(b.as_ptr().add(8)),
                ]
            };
            for (sums, a) in sums.iter_mut().zip(a) {
                let a = _mm256_set1_ps(*a);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = if FUSED {
                        _mm256_fmadd_ps(a, b, *sum)
                    } else {
                        _mm256_add_ps(*sum, _mm256_mul_ps(a, b))
                    };
                }
            }
        }
        let mut out = [[0.0; 16]; M];
        for (out, [low, high]) in out.iter_mut().zip(sums) {
            // SAFETY: `out` is 16 elements.
            unsafe {
                _mm256_storeu_ps(out.as_mut_ptr(), low);
                _mm256_storeu_ps(out.as_mut_ptr().add(8), high);
            }
        }
        out
    }
}
