//! How far a set of vectors lies from another, compared in float64.

use std::fmt;

/// The worst text of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Deviation {
    /// Largest absolute difference of a component, over all texts.
    pub component: f64,
    /// Largest L2 distance of a vector, over all texts.
    pub l2: f64,
    /// The text with the largest L2 distance.
    pub text: usize,
}

/// What the project promises for fp32 on every engine and target. A bound on the cosine alone
/// would be too loose: 1 - cos is half the squared L2 distance.
pub const BOUNDS: Deviation = Deviation {
    component: 1e-6,
    l2: 5e-6,
    text: 0,
};

/// What it promises of vectors that are computed with 16-bit floats.
pub const BOUNDS_F16: Deviation = Deviation {
    component: 5e-3,
    l2: 5e-3,
    text: 0,
};

impl Deviation {
    /// Measures row after row. Rows that differ in length or hold NaN deviate without limit.
    pub fn between<'a, 'b>(
        got: impl IntoIterator<Item = &'a [f32]>,
        want: impl IntoIterator<Item = &'b [f64]>,
    ) -> Self {
        let mut worst = Self::default();
        let (mut got, mut want) = (got.into_iter(), want.into_iter());
        for text in 0.. {
            let (component, l2) = match (got.next(), want.next()) {
                (None, None) => break,
                (Some(got), Some(want)) if got.len() == want.len() => row(got, want),
                _ => (f64::INFINITY, f64::INFINITY),
            };
            worst.component = worst.component.max(component);
            if l2 > worst.l2 {
                (worst.l2, worst.text) = (l2, text);
            }
            if component.is_infinite() {
                break;
            }
        }
        worst
    }

    /// Whether both figures stay within the bounds.
    pub fn within(&self, bounds: &Self) -> bool {
        self.component <= bounds.component && self.l2 <= bounds.l2
    }
}

fn row(got: &[f32], want: &[f64]) -> (f64, f64) {
    let (mut component, mut squares) = (0.0f64, 0.0f64);
    for (&got, &want) in got.iter().zip(want) {
        let difference = (f64::from(got) - want).abs();
        if difference.is_nan() {
            return (f64::INFINITY, f64::INFINITY);
        }
        component = component.max(difference);
        squares += difference * difference;
    }
    (component, squares.sqrt())
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "largest component difference {:.2e}, L2 {:.2e} (text {})",
            self.component, self.l2, self.text
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_row_is_found() {
        let got: [&[f32]; 2] = [&[1.0, 2.0], &[3.0, 5.0]];
        let want: [&[f64]; 2] = [&[1.0, 2.0], &[0.0, 1.0]];
        assert_eq!(
            Deviation::between(got, want),
            Deviation {
                component: 4.0,
                l2: 5.0,
                text: 1
            }
        );
    }

    #[test]
    fn nothing_that_is_missing_or_nan_passes() {
        let one: [&[f32]; 1] = [&[1.0]];
        let nan: [&[f32]; 1] = [&[f32::NAN]];
        let wide: [&[f32]; 1] = [&[1.0, 0.0]];
        let want: [&[f64]; 1] = [&[1.0]];
        let none: [&[f32]; 0] = [];
        for got in [&nan[..], &wide[..], &none[..], &[one[0], one[0]][..]] {
            assert!(
                !Deviation::between(got.iter().copied(), want).within(&BOUNDS),
                "{got:?}"
            );
        }
        assert!(Deviation::between(one, want).within(&BOUNDS));
    }
}
