//! What the inputs of products have in common, in the same memory for any number of texts.

use crate::error::{OptimizeError, Result};

/// Rows that are added at a time.
const ROWS: usize = 16;

/// The second moments of rows: `Σ x[i] · x[j]` for every pair of places, in f64 and in the order of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    width: usize,
    rows: u64,
    /// For each `i` those with `j` from 0 to `i`.
    sums: Vec<f64>,
}

impl Moments {
    /// Of no rows of `width` values.
    pub fn new(width: usize) -> Self {
        Self {
            width,
            rows: 0,
            sums: vec![0.0; Self::entries(width)],
        }
    }

    /// Numbers that rows of this width take.
    pub(crate) fn entries(width: usize) -> usize {
        width * (width + 1) / 2
    }

    /// Adds rows, one after the other. On an error none of them is added.
    ///
    /// # Errors
    /// [`OptimizeError::NotFinite`]; [`OptimizeError::Size`] for values that are no whole number of rows.
    pub fn add(&mut self, values: &[f32]) -> Result<()> {
        if self.width == 0 || values.is_empty() || !values.len().is_multiple_of(self.width) {
            return Err(OptimizeError::Size {
                what: "the number of values of the rows",
                asked: values.len().to_string(),
                allowed: format!("a multiple of {}", self.width),
            });
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Err(OptimizeError::NotFinite {
                what: "an input of a product, while calibrating,".into(),
            });
        }
        let mut part = vec![0f32; self.width];
        for rows in values.chunks(ROWS * self.width) {
            let mut sums = self.sums.as_mut_slice();
            for i in 0..self.width {
                let (own, rest) = sums.split_at_mut(i + 1);
                sums = rest;
                let part = &mut part[..=i];
                part.fill(0.0);
                for row in rows.chunks_exact(self.width) {
                    let by = row[i];
                    part.iter_mut()
                        .zip(row)
                        .for_each(|(part, value)| *part += by * value);
                }
                own.iter_mut()
                    .zip(&*part)
                    .for_each(|(sum, &part)| *sum += f64::from(part));
            }
        }
        self.rows += (values.len() / self.width) as u64;
        Ok(())
    }

    /// Rows so far: tokens, of texts.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Places of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The mean of `x[i] · x[j]`; 0 of no rows.
    pub fn mean(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.max(j), i.min(j));
        self.sums[Self::entries(i) + j] / self.rows.max(1) as f64
    }

    /// The mean of the squares of each place.
    pub fn squares(&self) -> Vec<f64> {
        (0..self.width).map(|i| self.mean(i, i)).collect()
    }
}

#[cfg(test)]
mod tests {
    use isovec_test_models::rng::Rng;

    use super::*;

    #[test]
    fn moments_are_those_of_the_definition_and_portions_do_not_matter() {
        let mut rng = Rng::new(9);
        let rows: Vec<f32> = (0..5 * 40).map(|_| rng.normal() as f32).collect();
        let mut whole = Moments::new(5);
        whole.add(&rows).unwrap();
        for (i, j) in [(0, 0), (1, 3), (3, 1), (4, 4)] {
            let products = rows
                .chunks(5)
                .map(|row| f64::from(row[i]) * f64::from(row[j]));
            let wanted = products.sum::<f64>() / 40.0;
            let found = whole.mean(i, j);
            assert!((found - wanted).abs() < 1e-6, "{i} {j}: {found} {wanted}");
        }
        assert_eq!(whole.squares()[2], whole.mean(2, 2));
        let mut parts = Moments::new(5);
        rows.chunks(16 * 5)
            .for_each(|part| parts.add(part).unwrap());
        assert_eq!((whole.rows(), whole.width()), (40, 5));
        assert_eq!(whole, parts);
    }

    #[test]
    fn rows_that_are_none_are_refused_and_leave_nothing() {
        let mut moments = Moments::new(3);
        assert!(moments.add(&[]).is_err());
        assert!(moments.add(&[1.0; 4]).is_err());
        assert!(moments.add(&[1.0, f32::NAN, 0.0]).is_err());
        assert_eq!(moments, Moments::new(3));
        assert_eq!(moments.mean(1, 0), 0.0);
    }
}
