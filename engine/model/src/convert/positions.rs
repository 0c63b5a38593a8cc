//! Positions of one grid of squares for another: models are trained on larger pictures than they are used with.
//!
//! They are interpolated as torch does it: `interpolate(mode="bicubic", align_corners=False)`, a cubic convolution
//! (<https://doi.org/10.1109/TASSP.1981.1163711>) along each axis, here at f64. Its parameter is -0.75, and squares beyond the
//! border are those at it. With `antialias=True` it is -0.5, the kernel is as much wider as there are fewer squares, and
//! squares beyond the border do not count.

use std::borrow::Cow;

use super::patches::PatchGrid;

/// The positions that a checkpoint holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Positions {
    /// Name in the checkpoint: rows for tokens that are no square, and for the squares.
    pub(super) tensor: String,
    /// What the rows are for.
    pub(super) stored: PatchGrid,
    /// torch's `antialias`.
    pub(super) smooth: bool,
}

impl Positions {
    /// The rows of squares, for those of another grid.
    pub(super) fn moved<'a>(&self, squares: &'a [f32], to: &PatchGrid) -> Cow<'a, [f32]> {
        let from = &self.stored;
        if (from.rows, from.columns) == (to.rows, to.columns) {
            return squares.into();
        }
        let width = squares.len() / (from.rows * from.columns).max(1);
        let down = weights(from.rows, to.rows, self.smooth);
        let across = weights(from.columns, to.columns, self.smooth);
        let mut moved = Vec::with_capacity(to.rows * to.columns * width);
        let mut sum = vec![0.0; width];
        for row in &down {
            for column in &across {
                sum.fill(0.0);
                for (y, high) in row {
                    for (x, wide) in column {
                        let square = &squares[(y * from.columns + x) * width..][..width];
                        for (sum, value) in sum.iter_mut().zip(square) {
                            *sum += high * wide * f64::from(*value);
                        }
                    }
                }
                moved.extend(sum.iter().map(|sum| *sum as f32));
            }
        }
        moved.into()
    }
}

/// For each of `to` places along an axis: which of `from` places it is made of, and their shares.
fn weights(from: usize, to: usize, smooth: bool) -> Vec<Vec<(usize, f64)>> {
    let scale = from as f64 / to as f64;
    let (parameter, stretch) = match smooth {
        true => (-0.5, scale.max(1.0)),
        false => (-0.75, 1.0),
    };
    let place = |place: usize| {
        let centre = (place as f64 + 0.5) * scale - 0.5;
        let near = |end: f64| (centre + end * 2.0 * stretch) as i64;
        let last = from as i64 - 1;
        let all = near(-1.0) - 1..=near(1.0) + 1;
        let all = all.filter(|at| !smooth || (0..=last).contains(at));
        let share = |at: i64| cubic(((at as f64 - centre) / stretch).abs(), parameter);
        let all = all.map(|at| (at.clamp(0, last) as usize, share(at)));
        let all: Vec<_> = all.filter(|(_, share)| *share != 0.0).collect();
        let total: f64 = all.iter().map(|(_, share)| share).sum();
        let shares = all.into_iter().map(|(at, share)| (at, share / total));
        shares.collect()
    };
    (0..to).map(place).collect()
}

/// The kernel of cubic convolution.
fn cubic(x: f64, a: f64) -> f64 {
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((x - 5.0) * x + 8.0) * x * a - 4.0 * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(smooth: bool, (rows, columns): (usize, usize)) -> Vec<f32> {
        let grid = |rows, columns| PatchGrid {
            side: 1,
            rows,
            columns,
            special: 0,
        };
        let positions = Positions {
            tensor: String::new(),
            stored: grid(5, 5),
            smooth,
        };
        // Two numbers for each square, the second the first turned round.
        let number = |at: usize| (at * 7 % 11) as f32 - 4.0;
        let squares: Vec<f32> = (0..25).flat_map(|at| [number(at), -number(at)]).collect();
        let moved = positions.moved(&squares, &grid(rows, columns));
        for pair in moved.chunks(2) {
            assert_eq!(pair[0], -pair[1]);
        }
        moved.iter().step_by(2).copied().collect()
    }

    fn assert_near(found: &[f32], wanted: &[f32]) {
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 5e-6, "{found} for {wanted}");
        }
    }

    /// Numbers of OpenCV's `INTER_CUBIC`, which is torch's kernel; it has the shares in f32.
    #[test]
    fn positions_are_interpolated() {
        let fewer = [
            0.191_551_48,
            0.335_937_5,
            1.833_043_1,
            1.154_368_9,
            3.171_875,
            -1.955_365,
        ];
        assert_near(&moved(false, (2, 3)), &fewer);
        let more = [-3.384_973_6, 1.651_698_6, 4.144_881, 2.431_669];
        assert_near(&moved(false, (7, 4))[..4], &more);
    }

    /// Numbers of Pillow's `BICUBIC` of floats, which is torch's kernel with `antialias`.
    #[test]
    fn positions_are_smoothed() {
        let fewer = [
            -0.414_595_57,
            1.210_517_9,
            2.357_143_2,
            0.532_741_84,
            0.576_603_65,
            0.413_403_84,
        ];
        assert_near(&moved(true, (2, 3)), &fewer);
        let more = [-2.588_461_6, 1.116_013_3, 3.484_407_7, 3.155_622_2];
        assert_near(&moved(true, (7, 4))[..4], &more);
    }
}
