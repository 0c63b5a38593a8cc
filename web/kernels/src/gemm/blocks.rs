//! The loops around the tiles. They decide which data stays in which cache and goes to which thread.

use std::ops::Range;

use super::ahead::Ahead;
use super::epilogue::{Epilogue, Rows};
use super::error::{Mismatch, check_rows};
use super::kernel::{Kernel, MAX_PANEL, MAX_ROWS};
use super::pack::Packed;
use super::tile::{Finish, Operands, turns};
use crate::parallel::Pool;

/// Steps of k at a time: with 12 columns, 24 KB of B in the first cache.
const STEPS: usize = 512;
/// Bytes of A at a time: what the second cache keeps while B passes by.
pub(super) const A_BYTES: usize = 512 * 1024;
/// Rows at a time: with [`COLUMNS`], 256 KB of C that are still in the second cache when the epilogue comes.
const C_ROWS: usize = 512;
/// Steps of a sum that is over so soon that fetching C for the epilogue matters; then there are as many rows at a time, of which
/// C's part stays in the first cache.
const SHORT: usize = 64;
/// Columns between two passes of the epilogue.
pub(super) const COLUMNS: usize = 128;
/// Products that are worth another thread's attention.
const MIN_WORK: usize = 1 << 17;
/// Rows below which splitting by columns wastes less.
const MIN_SPLIT_ROWS: usize = 24;

/// Computes `C[m, n] = epilogue(A[m, k] · B[k, n])`, on the pool's threads where that is worth it.
///
/// Row `i` of C starts at `c[i * c_stride]`; values between the rows are not changed.
///
/// # Errors
///
/// If the operands do not fit each other, or B was packed for another width of panel. C is then as
/// it was.
#[allow(clippy::too_many_arguments, reason = "the operands of a product")]
pub fn gemm(
    kernel: &Kernel,
    m: usize,
    a: Rows<'_>,
    b: &Packed,
    epilogue: &Epilogue<'_>,
    c: &mut [f32],
    c_stride: usize,
    pool: &dyn Pool,
) -> Result<(), Mismatch> {
    let (k, n) = (b.k(), b.n());
    if b.panel() != kernel.panel() {
        return Err(Mismatch::new(format!(
            "B is packed in panels of {} columns, and {} takes {}: pack it for that kernel",
            b.panel(),
            kernel.name(),
            kernel.panel()
        )));
    }
    check_rows("A", a.values.len(), m, k, a.stride)?;
    check_rows("C", c.len(), m, n, c_stride)?;
    epilogue.check(m, n)?;
    if m == 0 || n == 0 {
        return Ok(());
    }

    let product = Product {
        kernel,
        a,
        b,
        epilogue,
        c: Shared(c.as_mut_ptr()),
        c_stride,
    };
    let panels = n.div_ceil(kernel.panel());
    let (row_parts, panel_parts) = split(m, panels, products(m, k, n), pool.threads());
    let job = |number: usize| {
        let rows = part(m, row_parts, number / panel_parts);
        let panels = part(panels, panel_parts, number % panel_parts);
        // SAFETY: the operands were checked above, and parts do not overlap.
        unsafe { product.compute(rows, panels) }
    };
    match row_parts * panel_parts {
        1 => job(0),
        jobs => pool.run(jobs, &job),
    }
    Ok(())
}

/// The products of numbers of a product of matrices, which are more than 32 bits can count.
pub(super) fn products(m: usize, k: usize, n: usize) -> usize {
    m.saturating_mul(n).saturating_mul(k)
}

/// In how many parts rows and panels are cut, for so many products.
pub(super) fn split(m: usize, panels: usize, work: usize, threads: usize) -> (usize, usize) {
    // Twice as many parts as threads: they do not all start at once.
    let parts = match threads {
        0 | 1 => 1,
        threads => (2 * threads).min(work / MIN_WORK).max(1),
    };
    let rows = parts.min((m / MIN_SPLIT_ROWS).max(1));
    (rows, parts.div_ceil(rows).min(panels))
}

/// The `number`th of `parts` nearly equal parts of `0..len`.
pub(super) fn part(len: usize, parts: usize, number: usize) -> Range<usize> {
    let (each, more) = (len / parts, len % parts);
    let start = number * each + number.min(more);
    start..start + each + usize::from(number < more)
}

/// Nearly equal parts of a range, none longer than `most`.
pub(super) fn parts(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let count = range.len().div_ceil(most).max(1);
    // Divided once: there may be a part for every few products.
    let (each, more) = (range.len() / count, range.len() % count);
    let start = move |number: usize| range.start + number * each + number.min(more);
    (0..count).map(move |number| start(number)..start(number + 1))
}

/// A range in groups of `each`, of which the last may be smaller.
pub(super) fn groups(range: Range<usize>, each: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(each)
        .map(move |start| start..end.min(start + each))
}

/// The first of many values that several threads write, each its own.
pub(super) struct Shared<T>(pub(super) *mut T);

// SAFETY: whoever gets a pointer from it answers for writing where nobody else does.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The value at `at`.
    ///
    /// # Safety
    ///
    /// There is such a value.
    pub(super) unsafe fn at(&self, at: usize) -> *mut T {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(at) }
    }
}

/// Operands that were checked.
struct Product<'a> {
    kernel: &'a Kernel,
    a: Rows<'a>,
    b: &'a Packed,
    epilogue: &'a Epilogue<'a>,
    c: Shared<f32>,
    c_stride: usize,
}

impl Product<'_> {
    /// Computes some rows of some panels.
    ///
    /// # Safety
    ///
    /// The operands fit each other, and nobody else uses those rows and columns of C.
    unsafe fn compute(&self, rows: Range<usize>, panels: Range<usize>) {
        let k = self.b.k();
        let c_rows = if k <= SHORT { SHORT } else { C_ROWS };
        let most_rows = (A_BYTES / (size_of::<f32>() * k.clamp(1, STEPS))).min(c_rows);
        let group = COLUMNS / self.kernel.panel();
        for rows in parts(rows, most_rows) {
            for steps in parts(0..k, STEPS) {
                for panels in groups(panels.clone(), group) {
                    // SAFETY: the caller's promise.
                    unsafe {
                        self.block(rows.clone(), panels.clone(), steps.clone());
                        if steps.end == k && !self.epilogue.is_empty() && !self.in_tiles() {
                            self.finish(rows.clone(), panels);
                        }
                    }
                }
            }
        }
    }

    /// Adds some steps of k to the sums of a block.
    ///
    /// # Safety
    ///
    /// As for [`Product::compute`].
    unsafe fn block(&self, rows: Range<usize>, panels: Range<usize>, steps: Range<usize>) {
        let full = self.full_panels();
        let strips = || parts(rows.clone(), self.kernel.rows());
        let count = strips().count();
        // The panels that the tallest strip takes at once stay in the first cache for all strips.
        let tallest = strips().map(|rows| rows.len()).max().unwrap_or(1);
        let together = self.kernel.strip(tallest).panels();
        let mut first = panels.start;
        while first < panels.end {
            let group = first..panels.end.min(first + together);
            for (number, rows) in strips().enumerate() {
                // Several panels at a time are read faster than the next ones could come.
                let ahead = match together {
                    1 => self.ahead(group.end, &steps, number, count),
                    _ => Ahead::NONE,
                };
                let mut panel = group.start;
                while panel < group.end {
                    let left = group.end.min(full).saturating_sub(panel);
                    // SAFETY: the caller's promise.
                    panel += unsafe { self.tile(rows.clone(), panel, left, steps.clone(), ahead) };
                }
            }
            first = group.end;
        }
    }

    /// What strip `number` of `count` asks for of the panel that comes next.
    fn ahead(&self, panel: usize, steps: &Range<usize>, number: usize, count: usize) -> Ahead {
        let width = self.kernel.panel();
        let first = (panel * self.b.k() + steps.start) * width;
        let values = self.b.values().get(first..first + steps.len() * width);
        values.map_or(Ahead::NONE, |values| {
            Ahead::part(values, turns(steps.len()), number, count)
        })
    }

    /// Whether the tiles of the last steps do the epilogue.
    fn in_tiles(&self) -> bool {
        self.kernel.finishes() && self.epilogue.activation.is_none()
    }

    /// Panels that have all their columns.
    fn full_panels(&self) -> usize {
        self.b.n() / self.kernel.panel()
    }

    /// Adds some steps of k to a tile at `panel`, which may span as many panels as are `full`;
    /// tells how many it did. None being full, `panel` is the last one, of fewer columns.
    ///
    /// # Safety
    ///
    /// As for [`Product::compute`]; there are no more rows than the kernel has.
    unsafe fn tile(
        &self,
        rows: Range<usize>,
        panel: usize,
        full: usize,
        steps: Range<usize>,
        ahead: Ahead,
    ) -> usize {
        let width = self.kernel.panel();
        let panel_stride = self.b.k() * width;
        let column = panel * width;
        let b = &self.b.values()[panel * panel_stride + steps.start * width..];
        // SAFETY: rows of A and C are within their values, by the checks of `gemm`; nobody else
        // uses these values of C.
        unsafe {
            let c = self.c.at(rows.start * self.c_stride + column);
            let mut on = Operands {
                k: steps.len(),
                a: self
                    .a
                    .values
                    .as_ptr()
                    .add(rows.start * self.a.stride + steps.start),
                a_stride: self.a.stride,
                b: b.as_ptr(),
                panel_stride,
                ahead,
                c,
                c_stride: self.c_stride,
                resume: steps.start > 0,
                #[cfg(target_arch = "x86_64")]
                columns: width.min(self.b.n() - column),
                finish: (steps.end == self.b.k() && self.in_tiles()).then(|| Finish {
                    bias: self.epilogue.bias.map(|bias| bias.as_ptr().add(column)),
                    residual: self.epilogue.residual.map(|residual| {
                        let first = rows.start * residual.stride + column;
                        (residual.values.as_ptr().add(first), residual.stride)
                    }),
                    limits: self.epilogue.limits,
                }),
            };
            let strip = self.kernel.strip(rows.len());
            match strip.several {
                Some((tile, panels)) if panels <= full => {
                    tile(&on);
                    return panels;
                }
                _ if full > 0 => (strip.single)(&on),
                _ if let Some(edge) = self.kernel.edge(rows.len()) => edge(&on),
                _ => {
                    // The tile writes whole panels: it gets a place for them.
                    let columns = self.b.n() - column;
                    let mut edge = [0.0_f32; MAX_ROWS * MAX_PANEL];
                    if on.resume {
                        for (row, edge) in edge.chunks_exact_mut(width).take(rows.len()).enumerate()
                        {
                            let c = c.add(row * self.c_stride);
                            edge[..columns].copy_from_slice(std::slice::from_raw_parts(c, columns));
                        }
                    }
                    (on.c, on.c_stride) = (edge.as_mut_ptr(), width);
                    (strip.single)(&on);
                    for (row, edge) in edge.chunks_exact(width).take(rows.len()).enumerate() {
                        let c = c.add(row * self.c_stride);
                        std::slice::from_raw_parts_mut(c, columns)
                            .copy_from_slice(&edge[..columns]);
                    }
                }
            }
        }
        1
    }

    /// Applies the epilogue to a block.
    ///
    /// # Safety
    ///
    /// As for [`Product::compute`].
    unsafe fn finish(&self, rows: Range<usize>, panels: Range<usize>) {
        let start = panels.start * self.kernel.panel();
        let end = self.b.n().min(panels.end * self.kernel.panel());
        let width = end - start;
        // Rows without anything between them are finished at once.
        let together = if self.c_stride == width {
            rows.len()
        } else {
            1
        };
        for rows in groups(rows, together) {
            // SAFETY: the segments are within C, by the checks of `gemm`; nobody else uses them.
            let segments = unsafe {
                let first = self.c.at(rows.start * self.c_stride + start);
                std::slice::from_raw_parts_mut(first, rows.len() * width)
            };
            self.epilogue
                .apply_to_rows(rows.start, start, width, segments);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_range_once() {
        for len in 0..40 {
            for most in 1..12 {
                let mut next = 7;
                for part in parts(7..7 + len, most) {
                    assert_eq!(part.start, next);
                    assert!(part.len() <= most);
                    assert!(len == 0 || !part.is_empty());
                    next = part.end;
                }
                assert_eq!(next, 7 + len);
            }
        }
    }

    #[test]
    fn work_is_split_only_where_it_is_large() {
        assert_eq!(split(128, 32, 1 << 30, 1), (1, 1));
        assert_eq!(split(4, 4, 1000, 8), (1, 1));
        assert_eq!(split(1024, 32, 1 << 30, 4), (8, 1));
        assert_eq!(split(1, 32, 1 << 30, 4), (1, 8));
        assert_eq!(split(48, 32, 1 << 30, 4), (2, 4));
        assert_eq!(split(1, 2, 1 << 30, 4), (1, 2));
    }
}
