//! Products of small matrices that stand in panels.

/// `product + sum`, rounded once where `FUSED` and the machine can, else twice.
///
/// `FUSED` is set only where the machine can: in functions that are compiled with the feature.
#[inline(always)]
fn multiply_add<const FUSED: bool, const N: usize>(sum: &mut [f32; N], a: f32, b: &[f32; N]) {
    #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
    if FUSED {
        use core::arch::wasm32::{f32x4, f32x4_extract_lane, f32x4_relaxed_madd, f32x4_splat};
        let (sums, _) = sum.as_chunks_mut::<4>();
        let (bs, _) = b.as_chunks::<4>();
        for (sum, b) in sums.iter_mut().zip(bs) {
            let next = f32x4_relaxed_madd(
                f32x4_splat(a),
                f32x4(b[0], b[1], b[2], b[3]),
                f32x4(sum[0], sum[1], sum[2], sum[3]),
            );
            *sum = [
                f32x4_extract_lane::<0>(next),
                f32x4_extract_lane::<1>(next),
                f32x4_extract_lane::<2>(next),
                f32x4_extract_lane::<3>(next),
            ];
        }
        return;
    }
    for (sum, b) in sum.iter_mut().zip(b) {
        *sum = if FUSED {
            a.mul_add(*b, *sum)
        } else {
            *sum + a * b
        };
    }
}

/// The product of a panel `[depth, M]`, transposed, and a panel `[depth, N]`: every element is one
/// sum in order of depth.
#[inline(always)]
pub(super) fn tile<const M: usize, const N: usize, const FUSED: bool>(
    a: &[f32],
    b: &[f32],
) -> [[f32; N]; M] {
    let mut sums = [[0.0; N]; M];
    let (a, _) = a.as_chunks::<M>();
    let (b, _) = b.as_chunks::<N>();
    for (a, b) in a.iter().zip(b) {
        for (sum, a) in sums.iter_mut().zip(a) {
            multiply_add::<FUSED, N>(sum, *a, b);
        }
    }
    sums
}
