//! Measures the similarity of two vectors, and finds the most similar of many.
//!
//! Every sum is taken in f64 over eight lanes, component `i` in lane `i % 8`, and the lanes are
//! then added in pairs. The order is fixed, so a score is the same number on every target, and
//! eight independent lanes are what compilers vectorise.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

/// A similarity function, by the names that sentence-transformers uses. Larger is more alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Similarity {
    /// The cosine of the angle.
    #[default]
    Cosine,
    /// The inner product.
    Dot,
    /// The negative L2 distance.
    Euclidean,
    /// The negative L1 distance.
    Manhattan,
}

impl std::fmt::Display for Similarity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cosine => "cosine",
            Self::Dot => "dot product",
            Self::Euclidean => "negative L2 distance",
            Self::Manhattan => "negative L1 distance",
        })
    }
}

impl Similarity {
    /// The score of two vectors of equal length.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        let score = match self {
            Self::Cosine => return cosine(a, b),
            Self::Dot => return dot(a, b),
            Self::Euclidean => -sum(a, b, |x, y| (x - y) * (x - y)).sqrt(),
            Self::Manhattan => -sum(a, b, |x, y| (x - y).abs()),
        };
        score as f32
    }
}

/// The inner product.
///
/// # Panics
/// When the lengths differ.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| x * y) as f32
}

/// The cosine of the angle between two vectors; 0 where one of them has no length.
///
/// # Panics
/// When the lengths differ.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let norms = (sum(a, a, |x, y| x * y) * sum(b, b, |x, y| x * y)).sqrt();
    if norms == 0.0 {
        return 0.0;
    }
    (sum(a, b, |x, y| x * y) / norms) as f32
}

/// The L2 norm.
pub(crate) fn norm(a: &[f32]) -> f64 {
    sum(a, a, |x, y| x * y).sqrt()
}

/// One result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The row's place in the set that was searched.
    pub index: usize,
    /// Its score; larger is more alike.
    pub score: f32,
}

/// The `k` largest scores, best first; equal scores in the order of their rows. NaN ranks last.
pub fn top_k(scores: impl IntoIterator<Item = f32>, k: usize) -> Vec<Hit> {
    let scores = scores.into_iter().enumerate();
    best(scores.map(|(index, score)| Hit { index, score }), k)
}

/// The `k` best hits, best first; equal scores in the order of their rows. NaN ranks last.
pub(crate) fn best(hits: impl IntoIterator<Item = Hit>, k: usize) -> Vec<Hit> {
    if k == 0 {
        return Vec::new();
    }
    // A heap of the best so far with the worst of them on top. It grows with what it holds, so
    // a huge `k` takes no memory by itself.
    let mut heap: BinaryHeap<Worst> = BinaryHeap::new();
    for hit in hits.into_iter().map(Worst) {
        if heap.len() < k {
            heap.push(hit);
        } else if let Some(mut worst) = heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }
    heap.into_sorted_vec()
        .into_iter()
        .map(|Worst(hit)| hit)
        .collect()
}

/// Orders hits from best to worst.
#[derive(Debug)]
struct Worst(Hit);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |score: f32| {
            if score.is_nan() {
                f32::NEG_INFINITY
            } else {
                // The two zeros are one score.
                score + 0.0
            }
        };
        rank(other.0.score)
            .total_cmp(&rank(self.0.score))
            .then(self.0.score.is_nan().cmp(&other.0.score.is_nan()))
            .then(self.0.index.cmp(&other.0.index))
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Worst {}

const LANES: usize = 8;

fn sum(a: &[f32], b: &[f32], term: impl Fn(f64, f64) -> f64) -> f64 {
    sum_of(a, b, |x, y| term(f64::from(x), f64::from(y)))
}

/// The sum of a term of both elements, in the order of the lanes.
///
/// # Panics
/// When the lengths differ.
pub(crate) fn sum_of<A: Copy, B: Copy>(a: &[A], b: &[B], term: impl Fn(A, B) -> f64) -> f64 {
    assert_eq!(
        a.len(),
        b.len(),
        "vectors of different lengths have no similarity"
    );
    let mut lanes = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a.remainder().iter().zip(b.remainder());
    for (a, b) in a.zip(b) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += term(x, y);
        }
    }
    for (lane, (&x, &y)) in lanes.iter_mut().zip(rest) {
        *lane += term(x, y);
    }
    total(lanes)
}

/// The lanes added in pairs.
pub(crate) fn total([a, b, c, d, e, f, g, h]: [f64; LANES]) -> f64 {
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_functions_are_what_they_are_called() {
        let (a, b) = ([3.0, 4.0, 0.0], [0.0, 4.0, 3.0]);
        assert_eq!(dot(&a, &b), 16.0);
        assert_eq!(cosine(&a, &b), 16.0 / 25.0);
        assert_eq!(Similarity::Euclidean.score(&a, &b), -18f32.sqrt());
        assert_eq!(Similarity::Manhattan.score(&a, &b), -6.0);
        assert_eq!(cosine(&a, &[0.0; 3]), 0.0);
    }

    #[test]
    fn sums_are_taken_in_f64() {
        // In f32 the small terms would vanish beside the large one.
        let a = [1e8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1e8];
        assert_eq!(dot(&a, &[1.0; 9]), 7.0);
    }

    #[test]
    fn nan_ranks_last_and_ties_keep_their_order() {
        let hits = top_k([0.5, f32::NAN, 0.9, 0.5, f32::NEG_INFINITY], 9);
        let order: Vec<usize> = hits.iter().map(|hit| hit.index).collect();
        assert_eq!(order, [2, 0, 3, 4, 1]);
        assert!(top_k([1.0], 0).is_empty());
        // The two zeros are equal.
        let hits = top_k([-0.0, 0.0, -0.0], 3);
        assert!(hits.iter().map(|hit| hit.index).eq(0..3));
    }

    proptest! {
        #[test]
        fn top_k_is_the_head_of_a_stable_sort(scores in prop::collection::vec(-3i8..3, 0..40), k in 0usize..50) {
            let scores: Vec<f32> = scores.into_iter().map(f32::from).collect();
            let mut order: Vec<usize> = (0..scores.len()).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            order.truncate(k);
            let found: Vec<usize> = top_k(scores, k).iter().map(|hit| hit.index).collect();
            prop_assert_eq!(found, order);
        }

        #[test]
        fn dot_agrees_with_a_plain_sum(pairs in prop::collection::vec((-1f32..1.0, -1f32..1.0), 0..100)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
            let plain: f64 = pairs.iter().map(|&(x, y)| f64::from(x) * f64::from(y)).sum();
            prop_assert!((f64::from(dot(&a, &b)) - plain).abs() < 1e-5);
        }
    }
}
