//! Functions of two or three numbers, walked through matrices by their strides.

use crate::node::Binary;

/// Columns of one operand for one row of the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    /// From the operand's first column on.
    pub(super) values: &'a [f32],
    /// One for each extent.
    pub(super) strides: &'a [usize],
}

impl Walk<'_> {
    /// The run of the last extent at the outer index `at`.
    fn start(&self, at: &[usize]) -> usize {
        at.iter().zip(self.strides).map(|(i, s)| i * s).sum()
    }
}

/// Calls `run` with where each operand's run of the last extent starts, in order.
fn runs<const N: usize>(extents: &[usize], walks: [Walk<'_>; N], mut run: impl FnMut([usize; N])) {
    let outer = &extents[..extents.len().saturating_sub(1)];
    for at in crate::constant::indices(outer) {
        run(walks.map(|walk| walk.start(&at)));
    }
}

/// The last extent and, for each operand, the step along it. A result without extents is one
/// number.
fn inner<const N: usize>(extents: &[usize], walks: [Walk<'_>; N]) -> (usize, [usize; N]) {
    let length = extents.last().copied().unwrap_or(1);
    (
        length,
        walks.map(|walk| walk.strides.last().copied().unwrap_or(0)),
    )
}

/// `out = f(a, b)` for one row.
pub(super) fn zip(f: Binary, extents: &[usize], a: Walk<'_>, b: Walk<'_>, out: &mut [f32]) {
    match f {
        Binary::Add => each(extents, a, b, out, |a, b| a + b),
        Binary::Sub => each(extents, a, b, out, |a, b| a - b),
        Binary::Mul => each(extents, a, b, out, |a, b| a * b),
        Binary::Div => each(extents, a, b, out, |a, b| a / b),
        // A NaN on either side stays one.
        Binary::Max => each(
            extents,
            a,
            b,
            out,
            |a, b| {
                if a.is_nan() || a > b { a } else { b }
            },
        ),
        Binary::Min => each(
            extents,
            a,
            b,
            out,
            |a, b| {
                if a.is_nan() || a < b { a } else { b }
            },
        ),
        // Seldom on a path that anyone waits for: one loop for all of them.
        rare => each(extents, a, b, out, |a, b| {
            rare.apply(a.into(), b.into()) as f32
        }),
    }
}

fn each(extents: &[usize], a: Walk<'_>, b: Walk<'_>, out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    let (length, steps) = inner(extents, [a, b]);
    let mut out = out.chunks_exact_mut(length);
    runs(extents, [a, b], |[at, bt]| {
        let Some(out) = out.next() else { return };
        let (a, b) = (&a.values[at..], &b.values[bt..]);
        match steps {
            [1, 1] => {
                for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                    *out = f(*a, *b);
                }
            }
            [1, 0] => {
                for (out, a) in out.iter_mut().zip(a) {
                    *out = f(*a, b[0]);
                }
            }
            [0, 1] => {
                for (out, b) in out.iter_mut().zip(b) {
                    *out = f(a[0], *b);
                }
            }
            [x, y] => {
                for (place, out) in out.iter_mut().enumerate() {
                    *out = f(a[place * x], b[place * y]);
                }
            }
        }
    });
}

/// `out = if c then a else b` for one row.
pub(super) fn select(extents: &[usize], [c, a, b]: [Walk<'_>; 3], out: &mut [f32]) {
    let (length, steps) = inner(extents, [c, a, b]);
    let mut out = out.chunks_exact_mut(length);
    runs(extents, [c, a, b], |starts| {
        let Some(out) = out.next() else { return };
        for (place, out) in out.iter_mut().enumerate() {
            let value =
                |walk: Walk<'_>, which: usize| walk.values[starts[which] + place * steps[which]];
            *out = if value(c, 0) != 0.0 {
                value(a, 1)
            } else {
                value(b, 2)
            };
        }
    });
}

/// `out = a` for one row.
pub(super) fn copy(extents: &[usize], a: Walk<'_>, out: &mut [f32]) {
    let (length, [step]) = inner(extents, [a]);
    let mut out = out.chunks_exact_mut(length);
    runs(extents, [a], |[at]| {
        let Some(out) = out.next() else { return };
        if step == 1 {
            out.copy_from_slice(&a.values[at..at + length]);
        } else {
            for (place, out) in out.iter_mut().enumerate() {
                *out = a.values[at + place * step];
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_turn_and_repeat() {
        let values: Vec<f32> = (0..6).map(|n| n as f32).collect();
        let turned = Walk {
            values: &values,
            strides: &[1, 3],
        };
        let mut out = [0.0; 6];
        copy(&[3, 2], turned, &mut out);
        assert_eq!(out, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let repeated = Walk {
            values: &[10.0, 20.0],
            strides: &[0, 1],
        };
        zip(Binary::Sub, &[3, 2], repeated, turned, &mut out);
        assert_eq!(out, [10.0, 17.0, 9.0, 16.0, 8.0, 15.0]);
        let alone = Walk {
            values: &[7.0],
            strides: &[],
        };
        let mut one = [0.0];
        zip(Binary::Add, &[], alone, alone, &mut one);
        assert_eq!(one, [14.0]);
    }
}
