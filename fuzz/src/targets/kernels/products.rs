//! Products of matrices.

use arbitrary::{Result, Unstructured};
use isovec_kernels::gemm::{
    ActivationBits, Activations, Epilogue, Int8Kernel, Int8Weights, Kernel, Packed, Rows, gemm,
    gemm_int8,
};
use isovec_kernels::parallel::{OneThread, Pool};
use isovec_kernels::{Activation, Arithmetic};

use super::{Matrix, U, Values, close, extent, place, sum_off};
use crate::guarded::Guarded;

/// Says that it is several threads, and runs the last job first.
struct Backwards;

impl Pool for Backwards {
    fn threads(&self) -> usize {
        4
    }

    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        for number in (0..jobs).rev() {
            job(number);
        }
    }
}

/// What is done to the sums.
struct After {
    bias: Option<Guarded<f32>>,
    relu: bool,
    residual: Option<Matrix>,
}

impl After {
    fn new(u: &mut Unstructured<'_>, values: &mut Values, m: usize, n: usize) -> Result<Self> {
        let bias = match u.arbitrary()? {
            true => Some(Guarded::new(place(u)?, &values.many(n))),
            false => None,
        };
        let residual = match u.arbitrary()? {
            true => Some(Matrix::input(u, values, (m, n), false)?),
            false => None,
        };
        Ok(Self {
            bias,
            relu: u.arbitrary()?,
            residual,
        })
    }

    fn epilogue(&self) -> Epilogue<'_> {
        Epilogue {
            bias: self.bias.as_ref().map(Guarded::as_slice),
            activation: self
                .relu
                .then_some(|x: &mut [f32]| Activation::Relu.apply(x)),
            residual: self.residual.as_ref().map(rows),
            limits: None,
        }
    }

    /// What becomes of a sum, and of what it may be off.
    fn exact(&self, row: usize, column: usize, sum: f64, off: f64) -> (f64, f64) {
        let (mut value, mut off) = (sum, off);
        if let Some(bias) = &self.bias {
            value += f64::from(bias.as_slice()[column]);
            off += U * (value.abs() + off);
        }
        if self.relu {
            // It brings nothing further apart.
            value = value.max(0.0);
        }
        if let Some(residual) = &self.residual {
            value += f64::from(residual.at(row, column));
            off += U * (value.abs() + off);
        }
        (value, off)
    }
}

fn rows(matrix: &Matrix) -> Rows<'_> {
    Rows {
        values: matrix.values.as_slice(),
        stride: matrix.stride,
    }
}

/// B in memory: by rows, by columns, or neither.
struct Factor {
    values: Guarded<f32>,
    row_stride: usize,
    column_stride: usize,
}

impl Factor {
    fn new(u: &mut Unstructured<'_>, values: &mut Values, k: usize, n: usize) -> Result<Self> {
        let more = extent(u, 5)?;
        let (row_stride, column_stride) = match u.int_in_range(0..=2)? {
            0 => (n + more, 1),
            1 => (1, k + more),
            _ if k * n < 8192 => (2, 2 * k + more),
            _ => (1, k),
        };
        let len = match (k, n) {
            (0, _) | (_, 0) => 0,
            _ => (k - 1) * row_stride + (n - 1) * column_stride + 1,
        };
        let mut all = vec![f32::NAN; len];
        for row in 0..k {
            for column in 0..n {
                all[row * row_stride + column * column_stride] = values.next();
            }
        }
        Ok(Self {
            values: Guarded::new(place(u)?, &all),
            row_stride,
            column_stride,
        })
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        f64::from(self.values.as_slice()[row * self.row_stride + column * self.column_stride])
    }
}

/// Extents at the edges of tiles, of panels and of blocks.
fn extents(u: &mut Unstructured<'_>) -> Result<(usize, usize, usize)> {
    let (m, n) = (extent(u, 50)?, extent(u, 80)?);
    let k = match u.int_in_range(0..=15)? {
        // More than are added at a time.
        0 => u.int_in_range(500..=1050)?,
        _ => extent(u, 70)?,
    };
    Ok(if k > 100 {
        (m, k, n.min(40))
    } else {
        (m, k, n)
    })
}

pub(super) fn f32(u: &mut Unstructured<'_>) -> Result<()> {
    let (m, k, n) = extents(u)?;
    let mut values = Values::new(u)?;
    let a = Matrix::input(u, &mut values, (m, k), false)?;
    let b = Factor::new(u, &mut values, k, n)?;
    let after = After::new(u, &mut values, m, n)?;
    let mut c = Matrix::output(u, (m, n))?;
    let pool: &dyn Pool = match u.arbitrary()? {
        true => &OneThread,
        false => &Backwards,
    };
    let mut wanted = Vec::with_capacity(m * n);
    for row in 0..m {
        for column in 0..n {
            let (mut sum, mut magnitudes) = (0.0, 0.0);
            for step in 0..k {
                let product = f64::from(a.at(row, step)) * b.at(step, column);
                sum += product;
                magnitudes += product.abs();
            }
            wanted.push(after.exact(row, column, sum, sum_off(k, magnitudes)));
        }
    }
    for arithmetic in [Arithmetic::Fast, Arithmetic::Deterministic] {
        let mut bits: Option<Vec<u32>> = None;
        for kernel in Kernel::available(arithmetic) {
            let what = format!("{} {arithmetic:?} [{m}, {k}, {n}]", kernel.name());
            c.clear();
            let packed = Packed::new(
                kernel,
                (k, n),
                b.values.as_slice(),
                b.row_stride,
                b.column_stride,
            )
            .unwrap_or_else(|error| panic!("{what}: {error}"));
            let stride = c.stride;
            let out = c.values.as_mut_slice();
            gemm(
                kernel,
                m,
                rows(&a),
                &packed,
                &after.epilogue(),
                out,
                stride,
                pool,
            )
            .unwrap_or_else(|error| panic!("{what}: {error}"));
            hold(&what, &c, &wanted);
            if arithmetic == Arithmetic::Deterministic {
                same(&what, &c, &mut bits);
            }
        }
    }
    Ok(())
}

fn hold(what: &str, c: &Matrix, wanted: &[(f64, f64)]) {
    c.check(what);
    for (at, &(want, off)) in wanted.iter().enumerate() {
        let (row, column) = (at / c.columns, at % c.columns);
        let where_ = || format!("{what}, row {row}, column {column}");
        close(&where_, c.at(row, column), want, off);
    }
}

/// All of them give the same bits, the sign of a zero as well.
fn same(what: &str, c: &Matrix, bits: &mut Option<Vec<u32>>) {
    let all = c.values.as_slice().iter();
    let found: Vec<u32> = all.map(|value| value.to_bits()).collect();
    match bits {
        None => *bits = Some(found),
        Some(bits) => assert!(*bits == found, "{what}: other bits than the first kernel's"),
    }
}

pub(super) fn int8(u: &mut Unstructured<'_>) -> Result<()> {
    let (m, k, n) = extents(u)?;
    let mut values = Values::new(u)?;
    // The largest sums that there are: one bit more in either factor, and they would overflow.
    let all: Option<i8> = match u.int_in_range(0..=5)? {
        0 => Some(i8::MIN),
        1 => Some(i8::MAX),
        _ => None,
    };
    if all.is_some() {
        values.kind = 4;
    }
    let a = Matrix::input(u, &mut values, (m, k), false)?;
    let after = After::new(u, &mut values, m, n)?;
    let mut c = Matrix::output(u, (m, n))?;
    // Weights that are whole numbers already, of any of the 256, with scales of any size.
    let scales: Vec<f32> = (0..n).map(|_| values.next().abs()).collect();
    let numbers: Vec<i8> = (0..k * n)
        .map(|_| all.unwrap_or(values.bits() as i8))
        .collect();
    let column_place = place(u)?;
    let pool: &dyn Pool = match u.arbitrary()? {
        true => &OneThread,
        false => &Backwards,
    };
    let bits = match u.arbitrary()? {
        true => ActivationBits::Wide,
        false => ActivationBits::Eight,
    };
    let (group, levels) = match bits {
        // Sums of k products of 8 bits and as many more as 32 bits have room for, at most 15.
        ActivationBits::Wide => {
            let most = i32::MAX as usize / 128 / k.max(1);
            (k.max(1), most.min(i16::MAX as usize) as f64)
        }
        ActivationBits::Eight => (128, 127.0),
    };
    let groups = k.div_ceil(group);
    let mut wanted = Vec::with_capacity(m * n);
    for row in 0..m {
        let step_offs: Vec<f64> = (0..groups)
            .map(|number| {
                let steps = number * group..k.min((number + 1) * group);
                let largest = steps.map(|step| f64::from(a.at(row, step)).abs());
                let largest = largest.fold(0.0, f64::max);
                // Half a step, and what scaling rounds. Groups below 1e-30 count as zeros.
                (0.51 * largest / levels).max(if largest < 2e-30 { largest } else { 0.0 })
            })
            .collect();
        for column in 0..n {
            let scale = f64::from(scales[column]);
            let (mut sum, mut magnitudes, mut rounded) = (0.0, 0.0, 0.0);
            for step in 0..k {
                let weight = f64::from(numbers[column * k + step]);
                let product = f64::from(a.at(row, step)) * weight * scale;
                sum += product;
                magnitudes += product.abs();
                rounded += step_offs[step / group] * weight.abs() * scale;
            }
            // A group's sum itself is exact; its way back to f32 has four roundings, and there is
            // one more for each group that is added.
            let roundings = (4 + groups) as f64;
            let off = rounded + roundings * U * (magnitudes + rounded);
            wanted.push(after.exact(row, column, sum, off));
        }
    }
    let mut quantised = Activations::default();
    let mut found = None;
    for kernel in Int8Kernel::available(bits) {
        let what = format!("{} int8 {bits:?} [{m}, {k}, {n}]", kernel.name());
        c.clear();
        let mut weights =
            Int8Weights::zeros(kernel, (k, n)).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (column, &scale) in scales.iter().enumerate() {
            let column_values = Guarded::new(column_place, &numbers[column * k..][..k]);
            weights
                .set_quantised(column, column_values.as_slice(), scale)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        quantised
            .quantise(m, rows(&a), &weights, pool)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let stride = c.stride;
        let out = c.values.as_mut_slice();
        gemm_int8(
            kernel,
            &quantised,
            &weights,
            &after.epilogue(),
            out,
            stride,
            pool,
        )
        .unwrap_or_else(|error| panic!("{what}: {error}"));
        hold(&what, &c, &wanted);
        same(&what, &c, &mut found);
    }
    Ok(())
}
