//! Which inputs of a product can be missed, and what the others have to be multiplied with then.
//!
//! The error of a product without some of its inputs is least where the others make up for them: least squares. The inputs are taken
//! out one after the other, each time those whose loss costs least with all that are left making up for it: the optimal brain surgeon
//! of a single layer (B. Hassibi and D. Stork, 1993, "Second order derivatives for network pruning"; for heads and columns as in
//! W. Kwon et al., 2022, <https://arxiv.org/abs/2204.09656>).
//!
//! With `H` the second moments of the inputs, damped, and `W` the matrix: inputs `g` cost `tr(W[g]ᵀ (H⁻¹[g,g])⁻¹ W[g])`. Without them the
//! matrix is `W - H⁻¹[:,g] (H⁻¹[g,g])⁻¹ W[g]`, and the inverse `H⁻¹ - H⁻¹[:,g] (H⁻¹[g,g])⁻¹ H⁻¹[g,:]`.

use std::collections::HashSet;

use isovec_engine::cancel::Cancel;

use crate::error::{OptimizeError, Result};
use crate::int4::Moments;

/// What is added to each mean square, as a share of their mean: texts that were not seen have other inputs.
const DAMPING: f64 = 0.01;

/// A square matrix, row after row.
#[derive(Debug, Clone)]
struct Square {
    size: usize,
    values: Vec<f64>,
}

/// In which order units are taken out, and what that costs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Removal {
    /// The units, the first to go first.
    pub(super) order: Vec<usize>,
    /// The mean squared change of a row of the product without the first `k` of them, by `k` from 0.
    pub(super) errors: Vec<f64>,
}

/// The order in which at most `most` units of `size` inputs each are taken out of a product with a matrix `[width, columns]`.
pub(super) fn removal(
    moments: &Moments,
    matrix: &[f32],
    size: usize,
    most: usize,
    cancel: &Cancel,
) -> Result<Removal> {
    let width = moments.width();
    let columns = matrix.len() / width;
    let mut inverse = damped(moments).inverse();
    let mut weights: Vec<f64> = matrix.iter().map(|&value| f64::from(value)).collect();
    // What is at each place; units that are gone leave theirs to the last ones.
    let mut left: Vec<usize> = (0..width / size).collect();
    let mut made = Removal {
        order: Vec::new(),
        errors: vec![0.0],
    };
    let mut error = 0.0;
    while made.order.len() < most && left.len() > 1 {
        cancel.check().map_err(OptimizeError::from)?;
        let mut least = (f64::INFINITY, 0, Square::zeros(0));
        for place in 0..left.len() {
            let block = inverse.block(place * size, size).inverse();
            let own = &weights[place * size * columns..][..size * columns];
            let cost = block.through(own, columns);
            if cost < least.0 {
                least = (cost, place, block);
            }
        }
        let (cost, place, block) = least;
        if !cost.is_finite() {
            return Err(OptimizeError::NotFinite {
                what: "the cost of taking a column out".into(),
            });
        }
        error += cost;
        made.order.push(left[place]);
        made.errors.push(error);
        let last = left.len() - 1;
        inverse.swap(place * size, last * size, size);
        swap_rows(&mut weights, place * size, last * size, size, columns);
        left.swap_remove(place);
        let rest = last * size;
        // `by = H⁻¹[:,g] (H⁻¹[g,g])⁻¹`, a row after the other.
        let gone: Vec<f64> = weights[rest * columns..].to_vec();
        let rows: Vec<f64> = (0..size)
            .flat_map(|at| inverse.row(rest + at)[..rest].to_vec())
            .collect();
        for row in 0..rest {
            let own: Vec<f64> = (0..size).map(|at| inverse.row(row)[rest + at]).collect();
            let by: Vec<f64> = (0..size)
                .map(|at| own.iter().zip(block.row(at)).map(|(a, b)| a * b).sum())
                .collect();
            for (at, by) in by.into_iter().enumerate() {
                let each = inverse.row_mut(row)[..rest].iter_mut();
                each.zip(&rows[at * rest..])
                    .for_each(|(value, other)| *value -= by * other);
                let each = weights[row * columns..][..columns].iter_mut();
                each.zip(&gone[at * columns..])
                    .for_each(|(value, other)| *value -= by * other);
            }
        }
        weights.truncate(rest * columns);
        inverse.shrink(rest);
    }
    Ok(made)
}

/// What the rows that are left have to be, so that the product changes least without the other inputs.
pub(super) fn refitted(moments: &Moments, matrix: &[f32], kept: &[usize]) -> Vec<f32> {
    let columns = matrix.len() / moments.width();
    let whole = damped(moments);
    let is_kept: HashSet<usize> = kept.iter().copied().collect();
    let taken: Vec<usize> = (0..moments.width())
        .filter(|at| !is_kept.contains(at))
        .collect();
    // What the kept ones take over: `H[kept,kept] X = H[kept,taken] W[taken]`.
    let mut over = vec![0.0; kept.len() * columns];
    for (row, over) in kept.iter().zip(over.chunks_exact_mut(columns)) {
        for &place in &taken {
            let by = whole.row(*row)[place];
            let own = &matrix[place * columns..][..columns];
            over.iter_mut()
                .zip(own)
                .for_each(|(over, &value)| *over += by * f64::from(value));
        }
    }
    let mut left = Square::zeros(kept.len());
    for (at, &row) in kept.iter().enumerate() {
        for (to, &column) in left.row_mut(at).iter_mut().zip(kept) {
            *to = whole.row(row)[column];
        }
    }
    left.solve(&mut over, columns);
    let rows = kept.iter().zip(over.chunks_exact(columns));
    let rows = rows.flat_map(|(&row, over)| {
        let own = &matrix[row * columns..][..columns];
        own.iter()
            .zip(over)
            .map(|(&value, over)| (f64::from(value) + over) as f32)
    });
    rows.collect()
}

/// The second moments, with something added to the diagonal.
fn damped(moments: &Moments) -> Square {
    let width = moments.width();
    let mut whole = Square::zeros(width);
    for i in 0..width {
        let row = whole.row_mut(i).iter_mut().enumerate();
        row.for_each(|(j, value)| *value = moments.mean(i, j));
    }
    let mean = moments.squares().iter().sum::<f64>() / width.max(1) as f64;
    // Inputs that are always zero cost nothing.
    let damping = if mean > 0.0 { DAMPING * mean } else { 1.0 };
    for at in 0..width {
        whole.row_mut(at)[at] += damping;
    }
    whole
}

fn swap_rows(values: &mut [f64], a: usize, b: usize, rows: usize, columns: usize) {
    if a != b {
        let (before, behind) = values.split_at_mut(b * columns);
        before[a * columns..][..rows * columns].swap_with_slice(&mut behind[..rows * columns]);
    }
}

impl Square {
    fn zeros(size: usize) -> Self {
        Self {
            size,
            values: vec![0.0; size * size],
        }
    }

    fn row(&self, at: usize) -> &[f64] {
        &self.values[at * self.size..][..self.size]
    }

    fn row_mut(&mut self, at: usize) -> &mut [f64] {
        &mut self.values[at * self.size..][..self.size]
    }

    /// The square block that begins at this place of the diagonal.
    fn block(&self, first: usize, size: usize) -> Self {
        let values =
            (first..first + size).flat_map(|row| self.row(row)[first..first + size].to_vec());
        Self {
            size,
            values: values.collect(),
        }
    }

    /// `tr(wᵀ M w)` of the rows `w` of a matrix.
    fn through(&self, w: &[f64], columns: usize) -> f64 {
        let mut sum = 0.0;
        for i in 0..self.size {
            for j in 0..self.size {
                let pairs = w[i * columns..][..columns]
                    .iter()
                    .zip(&w[j * columns..][..columns]);
                sum += self.row(i)[j] * pairs.map(|(a, b)| a * b).sum::<f64>();
            }
        }
        sum
    }

    /// Swaps the rows and the columns of two ranges of places, the second behind the first.
    fn swap(&mut self, a: usize, b: usize, size: usize) {
        if a == b {
            return;
        }
        swap_rows(&mut self.values, a, b, size, self.size);
        for row in 0..self.size {
            let row = self.row_mut(row);
            (0..size).for_each(|at| row.swap(a + at, b + at));
        }
    }

    /// Keeps the first rows and columns.
    fn shrink(&mut self, size: usize) {
        for row in 0..size {
            let from = row * self.size;
            self.values.copy_within(from..from + size, row * size);
        }
        self.values.truncate(size * size);
        self.size = size;
    }

    /// The lower factor `L` of `L Lᵀ`, of a symmetric matrix that is positive definite.
    fn factor(mut self) -> Self {
        for i in 0..self.size {
            let (before, rest) = self.values.split_at_mut(i * self.size);
            let own = &mut rest[..self.size];
            for (j, other) in before.chunks_exact(self.size).enumerate() {
                let known: f64 = own[..j].iter().zip(other).map(|(a, b)| a * b).sum();
                own[j] = (own[j] - known) / other[j];
            }
            let known: f64 = own[..i].iter().map(|value| value * value).sum();
            own[i] = (own[i] - known).max(f64::MIN_POSITIVE).sqrt();
            own[i + 1..].fill(0.0);
        }
        self
    }

    /// `M⁻¹ B`, in the place of the rows of `B`.
    fn solve(self, rows: &mut [f64], columns: usize) {
        let size = self.size;
        let lower = self.factor();
        for i in 0..size {
            let (before, rest) = rows.split_at_mut(i * columns);
            let own = &mut rest[..columns];
            for (by, other) in lower.row(i).iter().zip(before.chunks_exact(columns)) {
                own.iter_mut()
                    .zip(other)
                    .for_each(|(own, other)| *own -= by * other);
            }
            own.iter_mut().for_each(|value| *value /= lower.row(i)[i]);
        }
        for i in (0..size).rev() {
            let (head, behind) = rows.split_at_mut((i + 1) * columns);
            let own = &mut head[i * columns..];
            for (at, other) in (i + 1..size).zip(behind.chunks_exact(columns)) {
                let by = lower.row(at)[i];
                own.iter_mut()
                    .zip(other)
                    .for_each(|(own, other)| *own -= by * other);
            }
            own.iter_mut().for_each(|value| *value /= lower.row(i)[i]);
        }
    }

    fn inverse(self) -> Self {
        let size = self.size;
        if let [single] = self.values.as_slice() {
            return Self {
                size,
                values: vec![single.recip()],
            };
        }
        let mut made = Self::zeros(size);
        for at in 0..size {
            made.row_mut(at)[at] = 1.0;
        }
        self.solve(&mut made.values, size);
        made
    }
}

#[cfg(test)]
mod tests {
    use isovec_test_models::rng::Rng;

    use super::*;

    const WIDTH: usize = 12;
    const COLUMNS: usize = 5;

    /// Inputs of which some are made of others, with means of their own, and a matrix.
    fn seeded() -> (Vec<f32>, Moments, Vec<f32>) {
        let mut rng = Rng::new(33);
        let mut normal = || rng.normal() as f32;
        let mix: Vec<f32> = (0..WIDTH * 6).map(|_| normal()).collect();
        let rows = (0..400).flat_map(|_| {
            let parts: Vec<f32> = (0..6).map(|_| normal()).collect();
            let own: Vec<f32> = (0..WIDTH).map(|_| 0.4 * normal()).collect();
            let row = (0..WIDTH).map(|at| {
                let mixed: f32 = parts.iter().zip(&mix[at * 6..]).map(|(a, b)| a * b).sum();
                mixed + own[at] + at as f32 * 0.05
            });
            row.collect::<Vec<f32>>()
        });
        let rows: Vec<f32> = rows.collect();
        let matrix = (0..WIDTH * COLUMNS).map(|_| normal()).collect();
        let mut moments = Moments::new(WIDTH);
        moments.add(&rows).unwrap();
        (rows, moments, matrix)
    }

    /// The mean squared change of a row of the product, straight from the definition.
    fn change(rows: &[f32], matrix: &[f32], kept: &[usize], made: &[f32]) -> f64 {
        let mut sum = 0.0;
        for row in rows.chunks_exact(WIDTH) {
            for column in 0..COLUMNS {
                let product = |place: usize, values: &[f32], at: usize| {
                    f64::from(row[place]) * f64::from(values[at * COLUMNS + column])
                };
                let whole: f64 = (0..WIDTH).map(|at| product(at, matrix, at)).sum();
                let less = kept.iter().enumerate();
                let less: f64 = less.map(|(at, &place)| product(place, made, at)).sum();
                sum += (whole - less).powi(2);
            }
        }
        sum / (rows.len() / WIDTH) as f64
    }

    fn kept(removal: &Removal, count: usize, size: usize) -> Vec<usize> {
        let gone = &removal.order[..count];
        let units = (0..WIDTH / size).filter(|unit| !gone.contains(unit));
        units
            .flat_map(|unit| unit * size..(unit + 1) * size)
            .collect()
    }

    #[test]
    fn the_error_that_is_told_is_the_one_that_is_left() {
        let (rows, moments, matrix) = seeded();
        for size in [1, 3] {
            let most = WIDTH / size - 1;
            let found = removal(&moments, &matrix, size, most, &Cancel::new()).unwrap();
            assert_eq!((found.order.len(), found.errors.len()), (most, most + 1));
            assert_eq!(found.errors[0], 0.0);
            for count in 0..=most {
                let kept = kept(&found, count, size);
                let made = refitted(&moments, &matrix, &kept);
                assert_eq!(made.len(), kept.len() * COLUMNS);
                let left = change(&rows, &matrix, &kept, &made);
                // The damping is a part of what is told, and none of what is left.
                let told = found.errors[count];
                assert!(left <= told * 1.001 + 1e-6, "{size} {count}: {left} {told}");
                assert!(left >= told * 0.4 - 1e-6, "{size} {count}: {left} {told}");
            }
        }
    }

    #[test]
    fn what_is_left_makes_up_for_what_is_gone() {
        let (rows, moments, matrix) = seeded();
        let found = removal(&moments, &matrix, 1, 4, &Cancel::new()).unwrap();
        assert_eq!((found.order.len(), found.errors.len()), (4, 5));
        let kept = kept(&found, 4, 1);
        let as_they_were = kept
            .iter()
            .flat_map(|&row| &matrix[row * COLUMNS..][..COLUMNS]);
        let as_they_were: Vec<f32> = as_they_were.copied().collect();
        let plain = change(&rows, &matrix, &kept, &as_they_were);
        let own = change(&rows, &matrix, &kept, &refitted(&moments, &matrix, &kept));
        println!("{plain} as they were, {own} refitted");
        assert!(own * 8.0 < plain, "{own} {plain}");
    }

    #[test]
    fn the_first_to_go_is_the_one_that_costs_least() {
        let (rows, moments, matrix) = seeded();
        let found = removal(&moments, &matrix, 1, 1, &Cancel::new()).unwrap();
        let costs = (0..WIDTH).map(|gone| {
            let kept: Vec<usize> = (0..WIDTH).filter(|&at| at != gone).collect();
            change(&rows, &matrix, &kept, &refitted(&moments, &matrix, &kept))
        });
        let costs: Vec<f64> = costs.collect();
        let least = (0..WIDTH).min_by(|&a, &b| costs[a].total_cmp(&costs[b]));
        assert_eq!(Some(found.order[0]), least, "{costs:?}");
    }

    #[test]
    fn inputs_that_are_always_zero_go_first_and_cost_nothing() {
        let (_, _, matrix) = seeded();
        let mut moments = Moments::new(WIDTH);
        for at in (0..WIDTH).filter(|at| ![3, 7].contains(at)) {
            let mut row = [0.0; WIDTH];
            row[at] = 2.0;
            moments.add(&row).unwrap();
        }
        let found = removal(&moments, &matrix, 1, 2, &Cancel::new()).unwrap();
        let mut first = found.order.clone();
        first.sort_unstable();
        assert_eq!(first, [3, 7]);
        let mut zeros = Moments::new(WIDTH);
        zeros.add(&[0.0; WIDTH]).unwrap();
        assert!(removal(&zeros, &matrix, 1, WIDTH, &Cancel::new()).is_ok());
    }
}
