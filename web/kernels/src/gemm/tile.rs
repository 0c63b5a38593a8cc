//! The innermost loop: a block of C that stays in registers while k goes by.

use super::ahead::Ahead;
use super::simd::Simd;

/// What a tile works on; strides in values.
pub(super) struct Operands {
    /// Steps of the sum.
    pub(super) k: usize,
    /// The first row of A.
    pub(super) a: *const f32,
    /// From one row of A to the next.
    pub(super) a_stride: usize,
    /// The first panel of B.
    pub(super) b: *const f32,
    /// From one panel of B to the next.
    pub(super) panel_stride: usize,
    /// What will be read of B after this panel; some of it is asked for in every turn.
    pub(super) ahead: Ahead,
    /// The first row of C.
    pub(super) c: *mut f32,
    /// From one row of C to the next.
    pub(super) c_stride: usize,
    /// Whether the sums go on from what is in C, or start at 0.
    pub(super) resume: bool,
    /// Columns of C, where the panel has fewer than its width: only the tiles of edges look at it.
    #[cfg(target_arch = "x86_64")]
    pub(super) columns: usize,
    /// What is done to the sums before they are stored, by tiles whose registers can.
    pub(super) finish: Option<Finish>,
}

/// `sum + bias + residual` within limits, each part only where it is there.
pub(super) struct Finish {
    /// The first column's bias.
    pub(super) bias: Option<*const f32>,
    /// The first row's residual, and from one row to the next.
    pub(super) residual: Option<(*const f32, usize)>,
    pub(super) limits: Option<(f32, f32)>,
}

impl Finish {
    /// Finishes a register of sums of row `row`, of which `count` columns from `column` on are there.
    ///
    /// # Safety
    ///
    /// To be inlined into a function compiled for the instructions of `S`; bias and residual have those columns and rows.
    #[inline(always)]
    unsafe fn apply<S: Simd>(&self, sum: S::V, row: usize, column: usize, count: usize) -> S::V {
        let mut sum = sum;
        // SAFETY: the caller's promise.
        unsafe {
            let load = |from: *const f32| match count == S::LANES {
                true => S::load(from),
                false => S::load_some(from, count),
            };
            if let Some(bias) = self.bias {
                sum = S::add(sum, load(bias.add(column)));
            }
            if let Some((residual, stride)) = self.residual {
                sum = S::add(sum, load(residual.add(row * stride + column)));
            }
            if let Some((least, most)) = &self.limits {
                sum = S::limit(sum, S::splat(least), S::splat(most));
            }
        }
        sum
    }
}

/// Steps of k before the pointers move on. There is a look at the loop's end after every one of
/// them: without, LLVM orders several steps by their sums instead of by their loads, and on wasm
/// the engine has to keep all that was loaded meanwhile on its stack (half the speed, measured).
const UNROLL: usize = 4;

/// How often [`Operands::ahead`] is asked in so many steps.
pub(super) fn turns(steps: usize) -> usize {
    steps.saturating_sub(1) / UNROLL
}

/// A tile of R rows and P panels, each of V registers; every value of C has one accumulator, to
/// which the products are added in the order of k.
///
/// # Safety
///
/// To be inlined into a function compiled for the instructions of `S`, which the processor has;
/// with W = V · LANES columns a panel, `a` is valid for reads of R rows of `k` values, `b` for P
/// panels of `k * W` values, `c` for reads and writes of R rows of `P * W` values which nobody else
/// touches meanwhile.
#[inline(always)]
pub(super) unsafe fn compute<
    S: Simd,
    const FUSED: bool,
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
        if on.resume {
            for (r, row) in sums.iter_mut().enumerate() {
                for (p, panel) in row.iter_mut().enumerate() {
                    for (v, sum) in panel.iter_mut().enumerate() {
                        *sum = S::load(on.c.add(r * on.c_stride + p * width + v * S::LANES));
                    }
                }
            }
        }

        let mut a: [*const f32; R] = std::array::from_fn(|r| on.a.add(r * on.a_stride));
        let mut b: [*const f32; P] = std::array::from_fn(|p| on.b.add(p * on.panel_stride));
        let mut ahead = on.ahead;
        let mut left = on.k;
        'steps: while left > 0 {
            for u in 0..UNROLL {
                step::<S, FUSED, R, P, V>(&mut sums, &a, &b, u);
                left -= 1;
                if left == 0 {
                    break 'steps;
                }
            }
            ahead.ask();
            for row in &mut a {
                *row = row.add(UNROLL);
            }
            for panel in &mut b {
                *panel = panel.add(UNROLL * width);
            }
        }

        for (r, row) in sums.iter().enumerate() {
            for (p, panel) in row.iter().enumerate() {
                for (v, sum) in panel.iter().enumerate() {
                    S::store(on.c.add(r * on.c_stride + p * width + v * S::LANES), *sum);
                }
            }
        }
        if S::FINISHES
            && let Some(finish) = &on.finish
        {
            // What was stored is read again: where sums are looked at by a running index, those of tall tiles are not kept in
            // registers while they are added up (short texts took twice as long, measured).
            for r in 0..R {
                for column in (0..P * width).step_by(S::LANES) {
                    let c = on.c.add(r * on.c_stride + column);
                    S::store(c, finish.apply::<S>(S::load(c), r, column, S::LANES));
                }
            }
        }
    }
}

/// R rows of one panel of V registers, of which `columns` columns are there. Registers without a column are not computed.
///
/// # Safety
///
/// As for [`compute`], but that `c` has `columns` values in a row, at least one and no more than the panel's width.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) unsafe fn edge<S: Simd, const FUSED: bool, const R: usize, const V: usize>(
    on: &Operands,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match on.columns.div_ceil(S::LANES) {
            1 => narrow::<S, FUSED, R, 1, V>(on),
            _ => narrow::<S, FUSED, R, V, V>(on),
        }
    }
}

/// R rows of the first U registers of a panel of V.
///
/// # Safety
///
/// As for [`edge`]; no column lies beyond the U registers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn narrow<S: Simd, const FUSED: bool, const R: usize, const U: usize, const V: usize>(
    on: &Operands,
) {
    let last = on.columns - (U - 1) * S::LANES;
    // SAFETY: all pointers stay within what the caller promises.
    unsafe {
        let mut sums = [[S::zero(); U]; R];
        if on.resume {
            for (r, row) in sums.iter_mut().enumerate() {
                let c = on.c.add(r * on.c_stride);
                for (v, sum) in row.iter_mut().enumerate() {
                    let count = if v + 1 < U { S::LANES } else { last };
                    *sum = S::load_some(c.add(v * S::LANES), count);
                }
            }
        }
        let mut b = on.b;
        for step in 0..on.k {
            let columns: [S::V; U] = std::array::from_fn(|v| S::load(b.add(v * S::LANES)));
            for (r, row) in sums.iter_mut().enumerate() {
                let left = S::splat(on.a.add(r * on.a_stride + step));
                for (sum, column) in row.iter_mut().zip(&columns) {
                    *sum = S::add_product::<FUSED>(*sum, left, *column);
                }
            }
            b = b.add(V * S::LANES);
        }
        for (r, row) in sums.iter().enumerate() {
            let c = on.c.add(r * on.c_stride);
            for (v, sum) in row.iter().enumerate() {
                let count = if v + 1 < U { S::LANES } else { last };
                let mut sum = *sum;
                if S::FINISHES
                    && let Some(finish) = &on.finish
                {
                    sum = finish.apply::<S>(sum, r, v * S::LANES, count);
                }
                S::store_some(c.add(v * S::LANES), sum, count);
            }
        }
    }
}

/// One step of k, `u` steps after where the pointers are.
///
/// # Safety
///
/// As for [`compute`].
#[inline(always)]
unsafe fn step<S: Simd, const FUSED: bool, const R: usize, const P: usize, const V: usize>(
    sums: &mut [[[S::V; V]; P]; R],
    a: &[*const f32; R],
    b: &[*const f32; P],
    u: usize,
) {
    let width = V * S::LANES;
    // SAFETY: the caller's promise.
    unsafe {
        let mut columns = [[S::zero(); V]; P];
        for (columns, panel) in columns.iter_mut().zip(b) {
            for (v, column) in columns.iter_mut().enumerate() {
                *column = S::load(panel.add(u * width + v * S::LANES));
            }
        }
        for (sums, row) in sums.iter_mut().zip(a) {
            let left = S::splat(row.add(u));
            for (sum, column) in sums
                .as_flattened_mut()
                .iter_mut()
                .zip(columns.as_flattened())
            {
                *sum = S::add_product::<FUSED>(*sum, left, *column);
            }
        }
    }
}
