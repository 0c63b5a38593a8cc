//! One sparse vector.

use serde::{Deserialize, Serialize};

/// The weights of the words that a text speaks of, and of those that belong to it: an index for each, in ascending order, and its
/// weight. All other words have the weight 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SparseVector {
    /// Token ids, each larger than the one before it.
    pub indices: Vec<u32>,
    /// Their weights, all above 0.
    pub values: Vec<f32>,
}

impl SparseVector {
    /// The same vector, borrowed.
    pub fn as_row(&self) -> SparseRow<'_> {
        SparseRow {
            indices: &self.indices,
            values: &self.values,
        }
    }
}

/// A sparse vector of a set.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SparseRow<'a> {
    /// Token ids, each larger than the one before it.
    pub indices: &'a [u32],
    /// Their weights, all above 0.
    pub values: &'a [f32],
}

impl SparseRow<'_> {
    /// The number of words with a weight.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether no word has a weight.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Every index with its weight.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        self.indices
            .iter()
            .copied()
            .zip(self.values.iter().copied())
    }

    /// The inner product with another vector: the sum over the words of both, at f64, rounded once. Whether both are of one model
    /// is the caller's to know; [`SparseEmbeddings::search`](crate::SparseEmbeddings::search) checks it.
    pub fn dot(&self, other: SparseRow<'_>) -> f32 {
        let mut sum = 0.0;
        let (mut a, mut b) = (self.iter().peekable(), other.iter().peekable());
        while let (Some(&(left, x)), Some(&(right, y))) = (a.peek(), b.peek()) {
            if left <= right {
                a.next();
            }
            if right <= left {
                b.next();
            }
            if left == right {
                sum += f64::from(x) * f64::from(y);
            }
        }
        sum as f32
    }

    /// A copy with the `most` largest weights; of equal ones, those of the smaller index.
    pub fn top_k(&self, most: usize) -> SparseVector {
        let mut kept: Vec<(u32, f32)> = self.iter().collect();
        if most < kept.len() {
            kept.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            kept.truncate(most);
            kept.sort_by_key(|&(index, _)| index);
        }
        let (indices, values) = kept.into_iter().unzip();
        SparseVector { indices, values }
    }

    /// A copy with its own memory.
    pub fn to_vector(&self) -> SparseVector {
        SparseVector {
            indices: self.indices.to_vec(),
            values: self.values.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(weights: &[(u32, f32)]) -> SparseVector {
        let (indices, values) = weights.iter().copied().unzip();
        SparseVector { indices, values }
    }

    #[test]
    fn a_product_is_over_the_words_of_both() {
        let a = vector(&[(1, 2.0), (4, 0.5), (9, 3.0)]);
        let b = vector(&[(0, 7.0), (4, 4.0), (8, 5.0), (9, 1.0)]);
        assert_eq!(a.as_row().dot(b.as_row()), 5.0);
        assert_eq!(b.as_row().dot(a.as_row()), 5.0);
        assert_eq!(a.as_row().dot(SparseVector::default().as_row()), 0.0);
    }

    #[test]
    fn the_largest_weights_stay_in_the_order_of_their_words() {
        let a = vector(&[(1, 0.5), (4, 2.0), (7, 0.5), (9, 3.0)]);
        assert_eq!(a.as_row().top_k(3), vector(&[(1, 0.5), (4, 2.0), (9, 3.0)]));
        assert_eq!(a.as_row().top_k(9), a);
        assert!(a.as_row().top_k(0).indices.is_empty());
    }
}
