//! The loops around the tiles of whole numbers. A tile goes over all of k, or group after group, at
//! once: a panel of bytes fits the first cache for every k that models have.

use std::ops::Range;

use super::super::ahead::Ahead;
use super::super::blocks::{A_BYTES, COLUMNS, Shared, groups, part, parts, products, split};
use super::super::epilogue::Epilogue;
use super::super::error::{Mismatch, check_rows};
use super::super::kernel::{MAX_PANEL, MAX_ROWS, Tile};
use super::activations::Activations;
use super::kernel::Int8Kernel;
use super::tile::{Operands, turns};
use super::weights::Int8Weights;
use crate::parallel::Pool;

/// Rows at a time at least, so that a panel of B is worth its way into the first cache.
const MIN_ROWS: usize = 48;

/// Computes `C[m, n] = epilogue(A[m, k] · B[k, n])`, on the pool's threads where that is worth it;
/// m are the rows of A.
///
/// Row `i` of C starts at `c[i * c_stride]`; values between the rows are not changed.
///
/// # Errors
///
/// If the operands do not fit each other, or B was packed for another width of panel. C is then as
/// it was.
pub fn gemm_int8(
    kernel: &Int8Kernel,
    a: &Activations,
    b: &Int8Weights,
    epilogue: &Epilogue<'_>,
    c: &mut [f32],
    c_stride: usize,
    pool: &dyn Pool,
) -> Result<(), Mismatch> {
    let (m, k, n) = (a.rows(), b.k(), b.n());
    if (b.panel(), b.form()) != (kernel.panel(), kernel.form()) {
        return Err(Mismatch::new(format!(
            "B is packed in panels of {} columns, {:?}, and {} takes {}, {:?}: pack it for that kernel",
            b.panel(),
            b.form(),
            kernel.name(),
            kernel.panel(),
            kernel.form()
        )));
    }
    if a.k() != k {
        return Err(Mismatch::new(format!(
            "A has rows of {} values, and B has {k} rows",
            a.k()
        )));
    }
    if a.form() != b.form() {
        return Err(Mismatch::new(format!(
            "A lies as {:?}, and B as {:?}: quantise it for that kernel",
            a.form(),
            b.form()
        )));
    }
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

/// Operands that were checked.
struct Product<'a> {
    kernel: &'a Int8Kernel,
    a: &'a Activations,
    b: &'a Int8Weights,
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
        let most_rows = (A_BYTES / (size_of::<i16>() * self.b.k().max(1))).max(MIN_ROWS);
        for rows in parts(rows, most_rows) {
            for panels in groups(panels.clone(), COLUMNS / self.kernel.panel()) {
                // SAFETY: the caller's promise.
                unsafe { self.block(rows.clone(), panels) };
            }
        }
    }

    /// Computes and finishes a block.
    ///
    /// # Safety
    ///
    /// As for [`Product::compute`].
    unsafe fn block(&self, rows: Range<usize>, panels: Range<usize>) {
        let width = self.kernel.panel();
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
                    1 => self.ahead(group.end, number, count),
                    _ => Ahead::NONE,
                };
                let mut panel = group.start;
                while panel < group.end {
                    let full = group.end.min(self.b.n() / width).saturating_sub(panel);
                    // SAFETY: the caller's promise.
                    panel += unsafe { self.tile(rows.clone(), panel, full, ahead) };
                }
            }
            first = group.end;
        }
        if self.epilogue.is_empty() {
            return;
        }
        let (start, end) = (panels.start * width, self.b.n().min(panels.end * width));
        for row in rows {
            // SAFETY: the segment is within C, by the checks of `gemm_int8`; nobody else uses it.
            let segment = unsafe {
                std::slice::from_raw_parts_mut(self.c.at(row * self.c_stride + start), end - start)
            };
            self.epilogue.apply(row, start, segment);
        }
    }

    /// Values from one panel of B to the next.
    fn panel_stride(&self) -> usize {
        self.b.k().next_multiple_of(self.b.form().steps()) * self.kernel.panel()
    }

    /// What strip `number` of `count` asks for of the panel that comes next.
    fn ahead(&self, panel: usize, number: usize, count: usize) -> Ahead {
        let (stride, form) = (self.panel_stride(), self.b.form());
        let turns = form.groups(self.b.k()) * turns(form.group(self.b.k()).div_ceil(form.steps()));
        let values = self.b.values().get(panel * stride..(panel + 1) * stride);
        values.map_or(Ahead::NONE, |values| {
            Ahead::part(values, turns, number, count)
        })
    }

    /// Computes a tile at `panel`, which may span as many panels as are `full`; tells how many it
    /// did. None being full, `panel` is the last one, of fewer columns.
    ///
    /// # Safety
    ///
    /// As for [`Product::compute`]; there are no more rows than the kernel has.
    unsafe fn tile(&self, rows: Range<usize>, panel: usize, full: usize, ahead: Ahead) -> usize {
        let width = self.kernel.panel();
        let (a, a_stride) = self.a.values();
        let (row_scales, row_scale_stride) = self.a.scales();
        let panel_stride = self.panel_stride();
        let column = panel * width;
        let strip = self.kernel.strip(rows.len());
        let (tile, panels) = match strip.several {
            Some((tile, panels)) if panels <= full => (tile, panels),
            _ => (strip.single, 1),
        };
        // SAFETY: rows of C are within its values, by the checks of `gemm_int8`; nobody else uses
        // these values of C. Sums cannot overflow, by how rows were quantised.
        unsafe {
            let c = self.c.at(rows.start * self.c_stride + column);
            let mut on = Operands {
                groups: 0,
                a: a[rows.start * a_stride..].as_ptr(),
                a_stride,
                b: self.b.values()[panel * panel_stride..].as_ptr(),
                panel_stride,
                ahead,
                row_scales: row_scales[rows.start * row_scale_stride..].as_ptr(),
                row_scale_stride,
                column_scales: self.b.scales()[column..].as_ptr(),
                column_sums: std::ptr::null(),
                c,
                c_stride: self.c_stride,
                adds: false,
            };
            if full > 0 {
                self.groups(on, tile, column);
            } else {
                // The tile writes whole panels: it gets a place for them.
                let columns = self.b.n() - column;
                let mut edge = [0.0_f32; MAX_ROWS * MAX_PANEL];
                (on.c, on.c_stride) = (edge.as_mut_ptr(), width);
                self.groups(on, tile, column);
                for (row, edge) in edge.chunks_exact(width).take(rows.len()).enumerate() {
                    let c = c.add(row * self.c_stride);
                    std::slice::from_raw_parts_mut(c, columns).copy_from_slice(&edge[..columns]);
                }
            }
        }
        panels
    }

    /// Computes a tile, one group of values that share a scale after the other.
    ///
    /// # Safety
    ///
    /// As for [`compute`](super::tile::compute), for all groups.
    unsafe fn groups(&self, mut on: Operands, tile: Tile<Operands>, column: usize) {
        let form = self.b.form();
        let (group, steps) = (form.group(self.b.k()), form.steps());
        for number in 0..form.groups(self.b.k()) {
            let length = group.min(self.b.k() - number * group);
            on.groups = length.div_ceil(steps);
            on.column_sums = match form.has_offset() {
                true => self.b.sums(number)[column..].as_ptr(),
                false => std::ptr::null(),
            };
            on.adds = number > 0;
            // SAFETY: the caller's promise; behind the last group no pointer is used.
            unsafe {
                tile(&on);
                on.a = on.a.wrapping_add(form.words(group));
                on.ahead = on.ahead.after(turns(on.groups));
                on.b = on.b.wrapping_add(group * self.kernel.panel());
                on.row_scales = on.row_scales.wrapping_add(1);
            }
        }
    }
}
