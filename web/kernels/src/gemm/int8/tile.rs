//! The innermost loop in whole numbers.

use super::simd::Int8Simd;
use crate::gemm::ahead::Ahead;

/// What a tile works on; strides in values.
pub(in crate::gemm) struct Operands {
    /// Groups of steps of the sum.
    pub(in crate::gemm) groups: usize,
    /// The first row of A, in words of 16 bits.
    pub(in crate::gemm) a: *const i16,
    /// From one row of A to the next.
    pub(in crate::gemm) a_stride: usize,
    /// The first panel of B.
    pub(in crate::gemm) b: *const i8,
    /// From one panel of B to the next.
    pub(in crate::gemm) panel_stride: usize,
    /// What will be read of B after this panel; some of it is asked for in every turn.
    pub(in crate::gemm) ahead: Ahead,
    /// The scale of the first row.
    pub(in crate::gemm) row_scales: *const f32,
    /// From the scale of one row to that of the next.
    pub(in crate::gemm) row_scale_stride: usize,
    /// The scale of the first column.
    pub(in crate::gemm) column_scales: *const f32,
    /// The sum of the first column's weights, where activations have an offset.
    pub(in crate::gemm) column_sums: *const i32,
    /// The first row of C.
    pub(in crate::gemm) c: *mut f32,
    /// From one row of C to the next.
    pub(in crate::gemm) c_stride: usize,
    /// Whether the products are added to what C holds.
    pub(in crate::gemm) adds: bool,
}

/// Groups of steps before the pointers move on; there is a look at the loop's end after each, for
/// the same reason as in the tile of f32.
const UNROLL: usize = 4;

/// How often [`Operands::ahead`] is asked in so many groups.
pub(in crate::gemm) fn turns(groups: usize) -> usize {
    groups.saturating_sub(1) / UNROLL
}

/// A tile of R rows and P panels, each of V registers:
/// `C = f32(sum of A · B) * (row scale * column scale)`, or C plus that.
///
/// # Safety
///
/// To be inlined into a function compiled for the instructions of `S`, which the processor has;
/// with W = V · LANES columns a panel, `a` is valid for reads of R rows of
/// `WORDS * groups` words, `b` for P panels of `STEPS * groups * W` values, the scales for R and
/// `P * W`, the sums, if the kernel's form has an offset, for `P * W`, `c` for reads and writes of
/// R rows of `P * W` values which nobody else touches meanwhile. No sum overflows.
#[inline(always)]
pub(in crate::gemm) unsafe fn compute<
    S: Int8Simd,
    const R: usize,
    const P: usize,
    const V: usize,
>(
    on: &Operands,
) {
    let width = V * S::LANES;
    // SAFETY: all pointers stay within what the caller promises.
    unsafe {
        let mut sums = [[[S::zero(); V]; P]; R];
        let mut a: [*const i16; R] = std::array::from_fn(|r| on.a.add(r * on.a_stride));
        let mut b: [*const i8; P] = std::array::from_fn(|p| on.b.add(p * on.panel_stride));
        let mut ahead = on.ahead;
        let mut left = on.groups;
        'steps: while left > 0 {
            for u in 0..UNROLL {
                step::<S, R, P, V>(&mut sums, &a, &b, u);
                left -= 1;
                if left == 0 {
                    break 'steps;
                }
            }
            ahead.ask();
            for row in &mut a {
                *row = row.add(S::WORDS * UNROLL);
            }
            for panel in &mut b {
                *panel = panel.add(S::STEPS * UNROLL * width);
            }
        }

        for (r, row) in sums.iter().enumerate() {
            for (v, sum) in row.as_flattened().iter().enumerate() {
                S::store_scaled(
                    on.c.add(r * on.c_stride + v * S::LANES),
                    on.adds,
                    *sum,
                    on.row_scales.add(r * on.row_scale_stride),
                    on.column_scales.add(v * S::LANES),
                    on.column_sums.wrapping_add(v * S::LANES),
                );
            }
        }
    }
}

/// A group of steps of k, `u` groups after where the pointers are.
///
/// # Safety
///
/// As for [`compute`].
#[inline(always)]
unsafe fn step<S: Int8Simd, const R: usize, const P: usize, const V: usize>(
    sums: &mut [[[S::Sum; V]; P]; R],
    a: &[*const i16; R],
    b: &[*const i8; P],
    u: usize,
) {
    let width = V * S::LANES;
    // SAFETY: the caller's promise.
    unsafe {
        let mut columns = [[S::no_weights(); V]; P];
        for (columns, panel) in columns.iter_mut().zip(b) {
            for (v, column) in columns.iter_mut().enumerate() {
                *column = S::load(panel.add(S::STEPS * (u * width + v * S::LANES)));
            }
        }
        for (sums, row) in sums.iter_mut().zip(a) {
            let left = S::splat(row.add(S::WORDS * u));
            for (sum, column) in sums
                .as_flattened_mut()
                .iter_mut()
                .zip(columns.as_flattened())
            {
                *sum = S::add_dot(*sum, left, *column);
            }
        }
    }
}
