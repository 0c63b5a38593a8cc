//! The kernels of the processor, against their formulas in f64, written plainly here.
//!
//! Bytes decide which kernel, its extents (0 and 1 often), its strides, where its slices lie, and a seed for the values.
//! Every slice lies against a page that nobody may touch, or nowhere near an aligned place; what is between the rows of
//! an output has to stay, and what is between the rows of an input is NaN. How far a result may be off is stated from
//! the length of its sums (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), and where a kernel
//! documents a bound of its own, it is held to that.

mod attention;
mod products;
mod rows;

use arbitrary::{Result, Unstructured};

use crate::bounds;
use crate::guarded::{Guarded, Place};

/// Half the distance from 1 to the next f32.
const U: f64 = 1.0 / (1 << 24) as f64;
/// What a product that is subnormal may be off.
const TINY: f64 = 1e-44;
/// What lies between the rows of an output.
const BETWEEN: f32 = f32::from_bits(0x7fc0_dead);

/// Tries one input.
pub fn run(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // What ends too early says nothing.
    let _ = bounds::ours(data.len(), || one(&mut u));
}

fn one(u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=9)? {
        0..=2 => products::f32(u),
        3 | 4 => products::int8(u),
        5 | 6 => attention::attention(u),
        7 => rows::norm(u),
        8 => rows::activation(u),
        _ => rows::pooling(u),
    }
}

/// From 0 on, 0 and 1 as often as all others together.
fn extent(u: &mut Unstructured<'_>, most: usize) -> Result<usize> {
    Ok(match u.int_in_range(0..=7)? {
        0 | 1 => 0,
        2 | 3 => 1,
        _ => u.int_in_range(0..=most)?,
    })
}

/// The same without 0.
fn some(u: &mut Unstructured<'_>, most: usize) -> Result<usize> {
    Ok(extent(u, most)?.max(1))
}

fn place(u: &mut Unstructured<'_>) -> Result<Place> {
    Ok(match u.int_in_range(0..=4)? {
        0 | 1 => Place::Last,
        2 => Place::First,
        _ => Place::Within(u.int_in_range(0..=40)?),
    })
}

/// Values from a seed: of one size, of very different ones, mostly zeros, small whole numbers, whose sums are exact, or
/// all the same.
struct Values {
    state: u64,
    kind: u8,
}

impl Values {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self {
            state: u.arbitrary()?,
            kind: u.int_in_range(0..=3)?,
        })
    }

    /// Without very different sizes.
    fn even(u: &mut Unstructured<'_>) -> Result<Self> {
        let mut values = Self::new(u)?;
        values.kind = if values.kind == 1 { 0 } else { values.kind };
        Ok(values)
    }

    /// Steele, Lea and Flood's SplitMix64.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn next(&mut self) -> f32 {
        let bits = self.bits();
        // From -1 to 1.
        let value = (bits >> 40) as f32 / (1 << 23) as f32 - 1.0;
        match self.kind {
            1 => value * 2.0_f32.powi((bits % 41) as i32 - 20),
            2 if !bits.is_multiple_of(8) => 0.0,
            3 => (bits % 17) as f32 - 8.0,
            4 => 1.0,
            _ => value,
        }
    }

    fn many(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// Rows of a matrix in memory, with something else between them.
struct Matrix {
    rows: usize,
    columns: usize,
    stride: usize,
    values: Guarded<f32>,
}

impl Matrix {
    /// An input: between its rows is NaN, and behind the last one nothing, unless `whole` rows are wanted.
    fn input(
        u: &mut Unstructured<'_>,
        values: &mut Values,
        (rows, columns): (usize, usize),
        whole: bool,
    ) -> Result<Self> {
        Self::filled(u, (rows, columns), whole, f32::NAN, || values.next())
    }

    /// An output, which holds NaN until it is written.
    fn output(u: &mut Unstructured<'_>, (rows, columns): (usize, usize)) -> Result<Self> {
        Self::filled(u, (rows, columns), false, BETWEEN, || f32::NAN)
    }

    fn filled(
        u: &mut Unstructured<'_>,
        (rows, columns): (usize, usize),
        whole: bool,
        between: f32,
        mut next: impl FnMut() -> f32,
    ) -> Result<Self> {
        let stride = columns + extent(u, 9)?;
        let stride = if whole { stride.max(1) } else { stride };
        let len = match rows {
            0 => 0,
            _ if whole => rows * stride,
            _ => (rows - 1) * stride + columns,
        };
        let mut all = vec![between; len];
        for row in 0..rows {
            all[row * stride..][..columns].fill_with(&mut next);
        }
        Ok(Self {
            rows,
            columns,
            stride,
            values: Guarded::new(place(u)?, &all),
        })
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        self.values.as_slice()[row * self.stride + column]
    }

    /// What is between the rows of an output is as it was.
    fn check(&self, what: &str) {
        self.values.check(what);
        for (at, value) in self.values.as_slice().iter().enumerate() {
            let between = at % self.stride.max(1) >= self.columns;
            assert!(
                !between || value.to_bits() == BETWEEN.to_bits(),
                "{what}: value {at} is between the rows of {} of {}, {} apart, and was written",
                self.rows,
                self.columns,
                self.stride
            );
        }
    }

    /// NaN everywhere but between the rows.
    fn clear(&mut self) {
        let (columns, stride) = (self.columns, self.stride.max(1));
        let values = self.values.as_mut_slice().iter_mut().enumerate();
        let inside = values.filter(|(at, _)| at % stride < columns);
        inside.for_each(|(_, value)| *value = f32::NAN);
    }
}

/// Holds a value to what it should be, give or take `off`, and its own rounding.
#[track_caller]
fn close(what: &dyn Fn() -> String, got: f32, want: f64, off: f64) {
    let allowed = off + U * want.abs() + TINY;
    let apart = (f64::from(got) - want).abs();
    assert!(
        apart <= allowed,
        "{}: {got} and not {want}, {apart:e} apart, allowed {allowed:e}",
        what()
    );
}

/// What a sum of so many products may be off, in any order, by the sum of their magnitudes.
fn sum_off(length: usize, magnitudes: f64) -> f64 {
    let steps = (length + 1) as f64 * U;
    steps / (1.0 - steps) * magnitudes + length as f64 * TINY
}
