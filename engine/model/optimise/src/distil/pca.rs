//! Principal components, by a solver that gives the same bits on every machine.
//!
//! Libraries for linear algebra choose their instructions by the processor, and with them the order of sums. Files that are
//! the same bytes on every run need one order, so the solver is here: Hestenes' one-sided Jacobi method (M. R. Hestenes,
//! "Inversion of matrices by biorthogonalization and related results", 1958), in f64 and in a fixed order. It takes time of the
//! third power of the components, some seconds for 768.

use crate::error::{OptimizeError, Result};

/// Sweeps over all pairs before giving up; ten are usual.
const SWEEPS: usize = 60;

/// Two rows whose cosine is smaller count as orthogonal.
const ORTHOGONAL: f64 = 1e-14;

/// A direction with less of the largest one's variance is rounding.
const LEAST_VARIANCE: f64 = 1e-12;

/// Sums are taken in so many parts, which the compiler may compute at once.
const LANES: usize = 8;

/// The directions in which rows vary most.
#[derive(Debug, Clone, PartialEq)]
pub struct PrincipalComponents {
    /// The mean of the rows, `[width]`.
    pub mean: Vec<f64>,
    /// Directions of length 1, orthogonal to each other, the one of the largest variance first: `[count, width]`. The largest
    /// component of each by magnitude is positive.
    pub directions: Vec<f64>,
    /// The variance along each: `Σ (row · direction - mean · direction)² / (rows - 1)`.
    pub variances: Vec<f64>,
    /// The sum of the variances along all directions.
    pub total_variance: f64,
}

impl PrincipalComponents {
    /// The first `count` of rows of `width` values.
    ///
    /// # Errors
    /// [`OptimizeError::NotFinite`]; [`OptimizeError::Size`] for no component, and for more than the rows have directions.
    pub fn of(rows: &[f32], width: usize, count: usize) -> Result<Self> {
        if !rows.iter().all(|value| value.is_finite()) {
            return Err(OptimizeError::NotFinite {
                what: "a token's vector".into(),
            });
        }
        let number = rows.len().checked_div(width).unwrap_or(0);
        let found = if number < 2 {
            Vec::new()
        } else {
            directions(covariance(rows, width, number), width)
        };
        let most = found.first().map_or(0.0, |(variance, _)| *variance);
        let spanned = found
            .iter()
            .take_while(|(variance, _)| *variance > most * LEAST_VARIANCE)
            .count();
        if count == 0 || count > spanned {
            return Err(OptimizeError::Size {
                what: "the dimension of the static vectors",
                asked: count.to_string(),
                allowed: format!(
                    "1 to {spanned}, the directions in which the {number} tokens' vectors differ"
                ),
            });
        }
        let total_variance = found.iter().map(|(variance, _)| variance).sum();
        let kept = &found[..count];
        Ok(Self {
            mean: mean(rows, width, number),
            directions: kept
                .iter()
                .flat_map(|(_, direction)| direction.clone())
                .collect(),
            variances: kept.iter().map(|(variance, _)| *variance).collect(),
            total_variance,
        })
    }

    /// A row's coordinates along the directions, from the mean.
    pub fn project(&self, row: &[f32]) -> Vec<f64> {
        let centred: Vec<f64> = row
            .iter()
            .zip(&self.mean)
            .map(|(&x, mean)| f64::from(x) - mean)
            .collect();
        let directions = self.directions.chunks_exact(self.mean.len().max(1));
        directions
            .map(|direction| dot(direction, &centred))
            .collect()
    }
}

fn mean(rows: &[f32], width: usize, number: usize) -> Vec<f64> {
    let mut sum = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for (sum, &value) in sum.iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
    sum.iter().map(|sum| sum / number as f64).collect()
}

/// `[width, width]`, symmetric.
fn covariance(rows: &[f32], width: usize, number: usize) -> Vec<f64> {
    let mean = mean(rows, width, number);
    let mut sums = vec![0.0; width * width];
    let mut centred = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for ((centred, &value), mean) in centred.iter_mut().zip(row).zip(&mean) {
            *centred = f64::from(value) - mean;
        }
        for (at, &one) in centred.iter().enumerate() {
            let sums = &mut sums[at * width + at..(at + 1) * width];
            for (sum, other) in sums.iter_mut().zip(&centred[at..]) {
                *sum += one * other;
            }
        }
    }
    for row in 0..width {
        for column in 0..row {
            sums[row * width + column] = sums[column * width + row];
        }
    }
    let freedom = (number - 1) as f64;
    sums.iter().map(|sum| sum / freedom).collect()
}

/// Eigenvalues and eigenvectors of a covariance matrix, the largest first.
///
/// Rows of the matrix are turned, two at a time, until all are orthogonal. As the matrix is symmetric and has no negative
/// eigenvalue, each row then is an eigenvector times its eigenvalue.
fn directions(mut matrix: Vec<f64>, width: usize) -> Vec<(f64, Vec<f64>)> {
    for _ in 0..SWEEPS {
        let mut turned = false;
        for first in 0..width {
            for second in first + 1..width {
                let (head, tail) = matrix.split_at_mut(second * width);
                let one = &mut head[first * width..(first + 1) * width];
                turned |= orthogonalise(one, &mut tail[..width]);
            }
        }
        if !turned {
            break;
        }
    }
    let rows = matrix.chunks_exact(width.max(1));
    let mut found: Vec<(f64, Vec<f64>)> = rows
        .map(|row| {
            let norm = dot(row, row).sqrt();
            let largest = row
                .iter()
                .fold(0.0, |most: f64, &x| match x.abs() > most.abs() {
                    true => x,
                    false => most,
                });
            let scale = if norm > 0.0 {
                norm.copysign(largest)
            } else {
                1.0
            };
            (norm, row.iter().map(|x| x / scale).collect())
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

/// Turns two rows in their plane until they are orthogonal; whether they had to be.
fn orthogonalise(one: &mut [f64], other: &mut [f64]) -> bool {
    let (a, b, both) = (dot(one, one), dot(other, other), dot(one, other));
    if both.abs() <= ORTHOGONAL * (a * b).sqrt() || both == 0.0 {
        return false;
    }
    let zeta = (b - a) / (2.0 * both);
    let tangent = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
    let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
    let sine = cosine * tangent;
    for (x, y) in one.iter_mut().zip(other) {
        (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
    }
    true
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a
        .remainder()
        .iter()
        .zip(b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a.zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use isovec_test_models::rng::Rng;

    use super::*;

    #[test]
    fn known_directions_are_found() {
        // Along (3, 4)/5 the points lie at -10, -5, 5 and 10 from (1, 1), across it at 1, -1, -1 and 1.
        let points = [(-10.0, 1.0), (-5.0, -1.0), (5.0, -1.0), (10.0, 1.0)];
        let rows: Vec<f32> = points
            .iter()
            .flat_map(|(along, across)| {
                [
                    1.0 + along * 0.6 - across * 0.8,
                    1.0 + along * 0.8 + across * 0.6,
                ]
            })
            .collect();
        let found = PrincipalComponents::of(&rows, 2, 2).unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{found:?}");
        for (found, wanted) in found.directions.iter().zip([0.6, 0.8, 0.8, -0.6]) {
            near(*found, wanted);
        }
        near(found.variances[0], 250.0 / 3.0);
        near(found.variances[1], 4.0 / 3.0);
        near(found.total_variance, 254.0 / 3.0);
        near(found.project(&rows[..2])[0], -10.0);
    }

    #[test]
    fn random_rows_are_decorrelated_and_keep_their_lengths() {
        const WIDTH: usize = 24;
        let mut rng = Rng::new(8);
        let rows: Vec<f32> = (0..200 * WIDTH)
            .map(|at| (rng.normal() * (1.0 + (at % WIDTH) as f64) + 3.0) as f32)
            .collect();
        let all = PrincipalComponents::of(&rows, WIDTH, WIDTH).unwrap();
        let projected: Vec<Vec<f64>> = rows
            .chunks_exact(WIDTH)
            .map(|row| all.project(row))
            .collect();
        for a in 0..WIDTH {
            for b in 0..WIDTH {
                let product: f64 = projected.iter().map(|row| row[a] * row[b]).sum::<f64>() / 199.0;
                let wanted = if a == b { all.variances[a] } else { 0.0 };
                assert!(
                    (product - wanted).abs() < 1e-8 * all.variances[0],
                    "{a} {b}: {product} {wanted}"
                );
            }
        }
        assert!(all.variances.is_sorted_by(|a, b| a >= b));
        let few = PrincipalComponents::of(&rows, WIDTH, 3).unwrap();
        assert_eq!(few.directions, all.directions[..3 * WIDTH]);
    }

    #[test]
    fn there_are_no_more_components_than_directions() {
        let flat = [1.0, 2.0, 0.0, 2.0, 4.0, 0.0, 3.0, 6.0, 0.0];
        assert!(PrincipalComponents::of(&flat, 3, 1).is_ok());
        let error = PrincipalComponents::of(&flat, 3, 2)
            .unwrap_err()
            .to_string();
        assert!(error.contains("1 to 1"), "{error}");
        for (rows, count) in [(&flat[..], 0), (&[1.0, 1.0, 1.0, 1.0][..], 1), (&[][..], 1)] {
            assert!(PrincipalComponents::of(rows, 2, count).is_err());
        }
        assert!(PrincipalComponents::of(&[f32::NAN, 1.0], 1, 1).is_err());
    }
}
