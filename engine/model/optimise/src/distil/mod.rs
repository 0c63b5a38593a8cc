//! A static model from a model's vectors of single tokens: the method of Model2Vec (S. Tulkens and T. van Dongen, "Model2Vec",
//! <https://github.com/MinishLab/model2vec>).
//!
//! 1. The model embeds every token of its vocabulary alone, between its special tokens. The caller does that.
//! 2. Principal components make the vectors shorter, and centre them ([`PrincipalComponents`]).
//! 3. Each token is weighted by smooth inverse frequency ([`sif_weight`]), so that frequent tokens count less in a text's mean.
//!
//! A text's vector is the mean over its tokens, scaled to length 1. What a token means beside others is lost.

mod files;
mod pca;
mod tokens;

use crate::error::{OptimizeError, Result};

pub use files::{StaticFiles, StaticPrecision, static_files};
pub use pca::PrincipalComponents;
pub use tokens::counted_tokens;

/// The constant `a` of [`sif_weight`], as Model2Vec has it.
pub const SIF_COEFFICIENT: f64 = 1e-4;

/// The vectors of a static model.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticTable {
    /// Components of a vector.
    pub width: usize,
    /// `[tokens, width]`, row-major.
    pub values: Vec<f32>,
    /// The share of the variance that the components keep, 0 to 1.
    pub explained: f64,
}

/// The weight of the token of a rank, from 0, in a vocabulary of so many: `a / (a + p)`, with `a` the [`SIF_COEFFICIENT`]
/// (S. Arora, Y. Liang and T. Ma, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings", 2017). Its frequency `p` is
/// taken from Zipf's law as Model2Vec takes it: `p = (1 / (rank + 2)) / Σ 1 / (i + 2)`. Vocabularies are in the order of
/// frequency, roughly.
pub fn sif_weights(tokens: usize) -> Vec<f64> {
    let inverse = |rank: usize| 1.0 / (rank as f64 + 2.0);
    let sum: f64 = (0..tokens).map(inverse).sum();
    let weight = |rank| sif_weight(inverse(rank) / sum);
    (0..tokens).map(weight).collect()
}

/// The weight of a token of a frequency, 0 to 1; see [`sif_weights`].
pub fn sif_weight(frequency: f64) -> f64 {
    SIF_COEFFICIENT / (SIF_COEFFICIENT + frequency)
}

/// Makes the table of a static model of the vectors of single tokens, `[tokens, width]`, in the order of their ids. Tokens
/// that do not `count` (special ones) get rows of zeros: they do not turn a text's mean.
///
/// # Errors
/// As [`PrincipalComponents::of`]; [`OptimizeError::Size`] for vectors that are not as many as the tokens.
pub fn distil(
    vectors: &[f32],
    width: usize,
    count: &[bool],
    dimension: usize,
) -> Result<StaticTable> {
    if width == 0 || vectors.len() != count.len() * width {
        return Err(OptimizeError::Size {
            what: "the number of the tokens' values",
            asked: vectors.len().to_string(),
            allowed: format!("{} tokens of {width}", count.len()),
        });
    }
    let rows = || vectors.chunks_exact(width).zip(count);
    let counted: Vec<f32> = rows()
        .filter(|(_, counts)| **counts)
        .flat_map(|(row, _)| row.iter().copied())
        .collect();
    let components = PrincipalComponents::of(&counted, width, dimension)?;
    let mut weights = sif_weights(counted.len() / width).into_iter();
    let mut values = Vec::with_capacity(count.len() * dimension);
    for (row, &counts) in rows() {
        match counts.then(|| weights.next()).flatten() {
            Some(weight) => {
                let projected = components.project(row);
                values.extend(projected.into_iter().map(|x| (x * weight) as f32));
            }
            None => values.extend(std::iter::repeat_n(0.0, dimension)),
        }
    }
    let kept: f64 = components.variances.iter().sum();
    Ok(StaticTable {
        width: dimension,
        values,
        explained: kept / components.total_variance,
    })
}

#[cfg(test)]
mod tests {
    use isovec_test_models::rng::Rng;

    use super::*;

    #[test]
    fn frequent_tokens_weigh_less() {
        let weights = sif_weights(30_000);
        assert!(weights.is_sorted());
        // 1/2 of Σ 1/(i + 2) = H(30001) - 1 = 9.886: a frequency of 0.05057.
        assert!(
            (weights[0] - 1e-4 / (1e-4 + 0.050_57)).abs() < 1e-6,
            "{}",
            weights[0]
        );
        assert_eq!(sif_weight(0.0), 1.0);
    }

    #[test]
    fn rows_are_projected_and_weighted_and_special_ones_are_zero() {
        let mut rng = Rng::new(3);
        let vectors: Vec<f32> = (0..50 * 6).map(|_| rng.normal() as f32).collect();
        let mut count = vec![true; 50];
        (count[0], count[7]) = (false, false);
        let table = distil(&vectors, 6, &count, 4).unwrap();
        assert_eq!(table.values.len(), 50 * 4);
        assert!(
            table.explained > 0.5 && table.explained < 1.0,
            "{}",
            table.explained
        );
        let row = |at: usize| &table.values[at * 4..][..4];
        assert_eq!((row(0), row(7)), (&[0.0; 4][..], &[0.0; 4][..]));
        let plain: Vec<f32> = vectors
            .chunks_exact(6)
            .zip(&count)
            .filter(|(_, counts)| **counts)
            .flat_map(|(row, _)| row.to_vec())
            .collect();
        let components = PrincipalComponents::of(&plain, 6, 4).unwrap();
        // Token 8 is the seventh that counts.
        let weight = sif_weights(48)[6];
        for (found, wanted) in row(8)
            .iter()
            .zip(components.project(&vectors[8 * 6..][..6]))
        {
            assert!(
                (f64::from(*found) - wanted * weight).abs() < 1e-7,
                "{found} {wanted}"
            );
        }
        assert!(distil(&vectors, 6, &count[1..], 4).is_err());
    }
}
