//! Rounding that lets later values of a matrix make up for the errors of earlier ones.
//!
//! GPTQ (E. Frantar et al., 2022, <https://arxiv.org/abs/2210.17323>) rounds a matrix so that its products with the inputs of texts
//! change least, rather than its values. It is written here as LDLQ, which gives the same numbers without inverting a matrix (J. Chee
//! et al., "QuIP", 2023, theorem 6, <https://arxiv.org/abs/2307.13304>).

use isovec_model::precision::{BLOCK, BlockTensor, block_scales, nearest};

use super::Moments;
use crate::error::{OptimizeError, Result};

/// What is added to each mean square, as a share of their mean: texts that were not seen have other inputs. GPTQ's own value.
const DAMPING: f64 = 0.01;

/// Stores a matrix `[width, columns]`, row-major, in blocks along its rows, for inputs with these moments.
///
/// With `H` the moments' means, damped, and `w` one column of the matrix, the squared error of a product is `e H eᵀ` of the column's
/// error `e`. Places are put in the order of their mean squares, the largest first. `H = (U + I) D (U + I)ᵀ` has `U` strictly above
/// the diagonal and `D` on it. Place `k` becomes the nearest number of its block to `w[k] + Σ e[i] · U[i][k]` over the places `i` before
/// it, with `e[i] = w[i] - ŵ[i]`, so that the error is `Σ D[k] η[k]²` with the roundings `η` alone. Scales are those of the matrix
/// itself, with errors weighted by the mean squares.
///
/// # Errors
/// [`OptimizeError::Size`] for moments of another width or of no rows; those of [`block_scales`].
pub fn quantize_for(
    values: &[f32],
    columns: usize,
    moments: &Moments,
    bits: u8,
) -> Result<BlockTensor> {
    let width = moments.width();
    if moments.rows() == 0 || width * columns != values.len() {
        return Err(OptimizeError::Size {
            what: "the matrix of a product",
            asked: format!("{} values in {columns} columns", values.len()),
            allowed: format!("{width} rows, with inputs that were seen"),
        });
    }
    let squares = moments.squares();
    let (shape, axis) = ([width, columns], 0);
    let scales = block_scales(values, &shape, axis, bits, Some(&squares))?;
    let mut order: Vec<usize> = (0..width).collect();
    order.sort_by(|&a, &b| squares[b].total_cmp(&squares[a]));
    let above = factor(moments, &order);
    let mut numbers = vec![0u8; values.len()];
    // By places in order, so that the errors before a place follow each other.
    let mut errors = vec![0f32; values.len()];
    let zero = f32::from(1u8 << (bits - 1));
    let mut wanted = vec![0f32; columns];
    for (k, &row) in order.iter().enumerate() {
        let own = &values[row * columns..][..columns];
        wanted.copy_from_slice(own);
        for (error, &by) in errors.chunks_exact(columns).zip(&above[k][..k]) {
            let by = by as f32;
            let each = wanted.iter_mut().zip(error);
            each.for_each(|(wanted, error)| *wanted += by * error);
        }
        let scales = &scales[row / BLOCK * columns..][..columns];
        let numbers = &mut numbers[row * columns..][..columns];
        let errors = &mut errors[k * columns..][..columns];
        for (column, scale) in scales.iter().enumerate() {
            let scale = scale.to_f32();
            let n = nearest(wanted[column], scale, bits);
            numbers[column] = n;
            errors[column] = own[column] - scale * (f32::from(n) - zero);
        }
    }
    Ok(BlockTensor::of_numbers(
        &numbers, scales, &shape, axis, bits,
    )?)
}

/// `U` of `H = (U + I) D (U + I)ᵀ`: `factor[k][i]` is `U[i][k]`, for `i` below `k`.
fn factor(moments: &Moments, order: &[usize]) -> Vec<Vec<f64>> {
    let width = order.len();
    let mean = moments.squares().iter().sum::<f64>() / width.max(1) as f64;
    // Inputs that are all zeros leave every value as it is.
    let damping = if mean > 0.0 { DAMPING * mean } else { 1.0 };
    let mut rows: Vec<Vec<f64>> = (0..width)
        .map(|i| {
            let row = (0..=i).map(|j| moments.mean(order[i], order[j]));
            let mut row: Vec<f64> = row.collect();
            row[i] += damping;
            row
        })
        .collect();
    for k in (0..width).rev() {
        let (before, own) = rows.split_at_mut(k);
        let own = &mut own[0];
        let pivot = own[k];
        own[..k].iter_mut().for_each(|value| *value /= pivot);
        for (i, row) in before.iter_mut().enumerate() {
            let by = own[i] * pivot;
            let each = row.iter_mut().zip(&*own);
            each.for_each(|(value, other)| *value -= by * other);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use isovec_model::precision::{dequantize_blocks, quantize_blocks};
    use isovec_test_models::rng::Rng;

    use super::*;

    const WIDTH: usize = 64;
    const COLUMNS: usize = 24;

    /// Inputs that depend on each other: 300 rows with a third as many directions as places, and noise; and a matrix.
    fn seeded() -> (Vec<f32>, Vec<f32>) {
        let mut rng = Rng::new(21);
        let mut normal =
            |count: usize| -> Vec<f32> { (0..count).map(|_| rng.normal() as f32).collect() };
        let directions = normal(WIDTH * WIDTH / 3);
        let rows = (0..300).flat_map(|_| {
            let mut row: Vec<f32> = normal(WIDTH).iter().map(|value| 0.2 * value).collect();
            for direction in directions.chunks_exact(WIDTH) {
                let by = normal(1)[0];
                row.iter_mut()
                    .zip(direction)
                    .for_each(|(value, other)| *value += by * other);
            }
            row
        });
        let rows = rows.collect();
        (rows, normal(WIDTH * COLUMNS))
    }

    /// The mean squared change of the products of all rows, straight from the definition.
    fn change(rows: &[f32], matrix: &[f32], other: &[f32]) -> f64 {
        let mut sum = 0.0;
        for row in rows.chunks_exact(WIDTH) {
            for column in 0..COLUMNS {
                let terms = row.iter().enumerate().map(|(at, &value)| {
                    let place = at * COLUMNS + column;
                    f64::from(value) * (f64::from(matrix[place]) - f64::from(other[place]))
                });
                sum += terms.sum::<f64>().powi(2);
            }
        }
        sum / rows.len() as f64 * WIDTH as f64
    }

    /// GPTQ as its paper has it, with the inverse of `H`: in place `k` the error over `U[k][k]` of the inverse's upper Cholesky factor
    /// goes to all places behind it.
    fn as_in_the_paper(matrix: &[f32], moments: &Moments, bits: u8) -> Vec<f64> {
        let squares = moments.squares();
        let mut order: Vec<usize> = (0..WIDTH).collect();
        order.sort_by(|&a, &b| squares[b].total_cmp(&squares[a]));
        let damping = 0.01 * squares.iter().sum::<f64>() / WIDTH as f64;
        // Gauss and Jordan's inverse.
        let mut h: Vec<Vec<f64>> = (0..WIDTH)
            .map(|i| {
                let row = (0..WIDTH).map(|j| {
                    let same = if i == j { damping } else { 0.0 };
                    moments.mean(order[i], order[j]) + same
                });
                row.chain((0..WIDTH).map(|j| f64::from(u8::from(i == j))))
                    .collect()
            })
            .collect();
        for pivot in 0..WIDTH {
            let by = h[pivot][pivot];
            h[pivot].iter_mut().for_each(|value| *value /= by);
            let own = h[pivot].clone();
            for row in (0..WIDTH).filter(|&row| row != pivot) {
                let by = h[row][pivot];
                h[row]
                    .iter_mut()
                    .zip(&own)
                    .for_each(|(value, own)| *value -= by * own);
            }
        }
        // The lower factor L of the inverse; U is its transpose.
        let mut lower = vec![vec![0.0; WIDTH]; WIDTH];
        for i in 0..WIDTH {
            for j in 0..=i {
                let known: f64 = (0..j).map(|m| lower[i][m] * lower[j][m]).sum();
                let left = h[i][WIDTH + j] - known;
                lower[i][j] = if i == j {
                    left.sqrt()
                } else {
                    left / lower[j][j]
                };
            }
        }
        let scales = block_scales(matrix, &[WIDTH, COLUMNS], 0, bits, Some(&squares)).unwrap();
        let mut found = vec![0.0; WIDTH * COLUMNS];
        for column in 0..COLUMNS {
            let mut w: Vec<f64> = order
                .iter()
                .map(|&row| f64::from(matrix[row * COLUMNS + column]))
                .collect();
            for k in 0..WIDTH {
                let scale = f64::from(scales[order[k] / BLOCK * COLUMNS + column].to_f32());
                let zero = f64::from(1u8 << (bits - 1));
                let n = (w[k] / scale + zero)
                    .round_ties_even()
                    .clamp(0.0, 2.0 * zero - 1.0);
                let value = scale * (n - zero);
                found[order[k] * COLUMNS + column] = value;
                let error = (w[k] - value) / lower[k][k];
                for later in k..WIDTH {
                    w[later] -= error * lower[later][k];
                }
            }
        }
        found
    }

    #[test]
    fn products_change_least_and_as_the_paper_says() {
        let (rows, matrix) = seeded();
        let mut moments = Moments::new(WIDTH);
        moments.add(&rows).unwrap();
        for bits in [3, 4, 5] {
            let nearest = quantize_blocks(&matrix, &[WIDTH, COLUMNS], 0, bits).unwrap();
            let nearest = change(&rows, &matrix, &dequantize_blocks(&nearest).unwrap());
            let tensor = quantize_for(&matrix, COLUMNS, &moments, bits).unwrap();
            let found = dequantize_blocks(&tensor).unwrap();
            let own = change(&rows, &matrix, &found);
            let paper = as_in_the_paper(&matrix, &moments, bits);
            let same = found
                .iter()
                .zip(&paper)
                .filter(|(a, b)| (f64::from(**a) - **b).abs() < 1e-4)
                .count();
            println!("{bits} bits: {nearest} by value, {own} with feedback, {same} the same");
            // A number between two may go to the other one, and what is after it with it.
            assert!(
                same * 100 >= found.len() * 97,
                "{bits}: {same} of {}",
                found.len()
            );
            assert!(own * 4.0 < nearest, "{bits}: {own} {nearest}");
            let paper: Vec<f32> = paper.iter().map(|&value| value as f32).collect();
            let quotient = own / change(&rows, &matrix, &paper);
            assert!((0.95..1.05).contains(&quotient), "{bits}: {quotient}");
        }
    }

    #[test]
    fn inputs_without_correlation_leave_the_nearest_values() {
        let (_, matrix) = seeded();
        let mut moments = Moments::new(WIDTH);
        for place in 0..WIDTH {
            let mut row = vec![0.0; WIDTH];
            row[place] = 1.0;
            moments.add(&row).unwrap();
        }
        let plain = quantize_blocks(&matrix, &[WIDTH, COLUMNS], 0, 4).unwrap();
        assert_eq!(quantize_for(&matrix, COLUMNS, &moments, 4).unwrap(), plain);
        // Inputs that are always zero are no reason to fail.
        let mut zeros = Moments::new(WIDTH);
        zeros.add(&[0.0; WIDTH]).unwrap();
        assert!(quantize_for(&matrix, COLUMNS, &zeros, 4).is_ok());
        let refused = |moments: &Moments, columns| {
            let made = quantize_for(&matrix, columns, moments, 4);
            made.unwrap_err().to_string()
        };
        assert!(refused(&Moments::new(WIDTH), COLUMNS).contains("inputs that were seen"));
        assert!(refused(&moments, COLUMNS + 1).contains("64 rows"));
    }
}
