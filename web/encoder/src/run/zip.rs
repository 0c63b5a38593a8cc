//! Functions of two or three numbers, walked through matrices by their strides.

use crate::constant;
use crate::node::Binary;

/// Columns of one operand for one row of the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk<'a> {
    /// From the operand's first column on.
    pub(super) values: &'a [f32],
    /// One for each extent.
    pub(super) strides: &'a [usize],
}

/// The last axis with more than one place: nothing is walked along those behind it. A result without one is one number.
fn last(extents: &[usize]) -> Option<usize> {
    extents.iter().rposition(|&extent| extent != 1)
}

/// Calls `run` with where each operand's run of the [`last`] axis starts, in order.
fn runs<const N: usize>(extents: &[usize], walks: [Walk<'_>; N], mut run: impl FnMut([usize; N])) {
    let outer = &extents[..last(extents).unwrap_or(0)];
    if outer.iter().all(|&extent| extent == 1) {
        return run([0; N]);
    }
    let strides = walks.map(|walk| walk.strides[..outer.len()].to_vec());
    constant::Walk::new(outer, strides).for_each(run);
}

/// The extent of the [`last`] axis and, for each operand, the step along it.
fn inner<const N: usize>(extents: &[usize], walks: [Walk<'_>; N]) -> (usize, [usize; N]) {
    match last(extents) {
        Some(at) => (extents[at], walks.map(|walk| walk.strides[at])),
        None => (1, [0; N]),
    }
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
        // Axes of one place behind the last that has more, before it and between.
        let behind = Walk {
            values: &values,
            strides: &[5, 1, 7, 3, 9],
        };
        copy(&[1, 3, 1, 2, 1], behind, &mut out);
        assert_eq!(out, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        let column = Walk {
            values: &[10.0, 20.0, 30.0],
            strides: &[0, 1, 0, 0, 0],
        };
        // Where the first is 0, the second of the others.
        select(&[1, 3, 1, 2, 1], [behind, column, behind], &mut out);
        assert_eq!(out, [0.0, 10.0, 20.0, 20.0, 30.0, 30.0]);
    }
}
