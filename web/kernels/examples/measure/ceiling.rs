//! The most additions and multiplications that the machine does: sums in registers, no memory.

/// Sums that do not wait for each other: enough for the longest latency times the most units.
const SUMS: usize = 12;

/// Adds a product to every sum `steps` times, on the widest registers; gives the sums' total, so
/// that nothing is left out, and the additions and multiplications done.
pub(crate) fn run(fused: bool, steps: usize) -> (f32, f64) {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the instructions.
            return unsafe { x86::avx512(fused, steps) };
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has the instructions.
            return unsafe { x86::avx2(fused, steps) };
        }
    }
    portable(fused, steps)
}

/// One loop over the sums; `$madd` is given the sum and two factors.
macro_rules! sums {
    ($steps:expr, $lanes:expr, $splat:expr, $madd:expr, $total:expr) => {{
        let (x, y) = ($splat(0.999), $splat(0.5));
        let mut sums = [$splat(1.0); SUMS];
        for _ in 0..$steps {
            for sum in &mut sums {
                *sum = $madd(*sum, x, y);
            }
        }
        let mut total = 0.0;
        for sum in &sums {
            total += $total(*sum);
        }
        (total, ($steps * SUMS * $lanes * 2) as f64)
    }};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::SUMS;

    #[target_feature(enable = "avx512f")]
    pub(super) fn avx512(fused: bool, steps: usize) -> (f32, f64) {
        let total = |sum| _mm512_reduce_add_ps(sum);
        if fused {
            let madd = |sum, x, y| _mm512_fmadd_ps(sum, x, y);
            sums!(steps, 16, _mm512_set1_ps, madd, total)
        } else {
            let madd = |sum, x, y| _mm512_add_ps(y, _mm512_mul_ps(sum, x));
            sums!(steps, 16, _mm512_set1_ps, madd, total)
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn avx2(fused: bool, steps: usize) -> (f32, f64) {
        let total = |sum| _mm256_cvtss_f32(sum);
        if fused {
            let madd = |sum, x, y| _mm256_fmadd_ps(sum, x, y);
            sums!(steps, 8, _mm256_set1_ps, madd, total)
        } else {
            let madd = |sum, x, y| _mm256_add_ps(y, _mm256_mul_ps(sum, x));
            sums!(steps, 8, _mm256_set1_ps, madd, total)
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
fn portable(fused: bool, steps: usize) -> (f32, f64) {
    use std::arch::wasm32::*;
    let total = |sum| f32x4_extract_lane::<0>(sum) + f32x4_extract_lane::<3>(sum);
    #[cfg(target_feature = "relaxed-simd")]
    if fused {
        let madd = |sum, x, y| f32x4_relaxed_madd(sum, x, y);
        return sums!(steps, 4, f32x4_splat, madd, total);
    }
    _ = fused;
    let madd = |sum, x, y| f32x4_add(y, f32x4_mul(sum, x));
    sums!(steps, 4, f32x4_splat, madd, total)
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
fn portable(fused: bool, steps: usize) -> (f32, f64) {
    let splat = |value: f32| [value; 4];
    let total = |sum: [f32; 4]| sum.into_iter().sum::<f32>();
    if fused && cfg!(target_arch = "aarch64") {
        let madd = |sum: [f32; 4], x: [f32; 4], y: [f32; 4]| {
            std::array::from_fn(|lane| sum[lane].mul_add(x[lane], y[lane]))
        };
        sums!(steps, 4, splat, madd, total)
    } else {
        let madd = |sum: [f32; 4], x: [f32; 4], y: [f32; 4]| {
            std::array::from_fn(|lane| sum[lane] * x[lane] + y[lane])
        };
        sums!(steps, 4, splat, madd, total)
    }
}
