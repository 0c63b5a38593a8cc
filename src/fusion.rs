//! Joins the results of several searches over the same rows, such as one by dense and one by sparse vectors.

use std::collections::BTreeMap;

use crate::similarity::{Hit, best};

/// What is added to every rank (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
/// Learning Methods", SIGIR 2009).
const RANK: f64 = 60.0;

/// The `k` best rows of several rankings of the same rows, best first, by reciprocal rank fusion: a row's score is the sum of
/// `1 / (60 + rank)` over the rankings that have it, the first rank being 1. Only the order of a ranking counts, so scores of
/// different kinds need not be alike. Equal scores are in the order of their rows.
///
/// ```
/// use isovec::{Hit, fuse};
///
/// let by_meaning = [Hit { index: 2, score: 0.8 }, Hit { index: 0, score: 0.7 }];
/// let by_words = [Hit { index: 1, score: 14.2 }, Hit { index: 2, score: 9.1 }];
/// let fused = fuse(&[&by_meaning, &by_words], 10);
/// assert_eq!(fused[0].index, 2);
/// ```
pub fn fuse<R: AsRef<[Hit]>>(rankings: &[R], k: usize) -> Vec<Hit> {
    let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
    for ranking in rankings {
        for (before, hit) in ranking.as_ref().iter().enumerate() {
            *scores.entry(hit.index).or_default() += 1.0 / (RANK + 1.0 + before as f64);
        }
    }
    let hits = scores.into_iter().map(|(index, score)| Hit {
        index,
        score: score as f32,
    });
    best(hits, k)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranking(rows: &[usize]) -> Vec<Hit> {
        rows.iter()
            .map(|&index| Hit { index, score: 0.0 })
            .collect()
    }

    #[test]
    fn scores_are_those_of_the_paper() {
        let fused = fuse(&[ranking(&[4, 7]), ranking(&[7, 9])], 9);
        let order: Vec<usize> = fused.iter().map(|hit| hit.index).collect();
        assert_eq!(order, [7, 4, 9]);
        for (hit, score) in fused
            .iter()
            .zip([1.0 / 61.0 + 1.0 / 62.0, 1.0 / 61.0, 1.0 / 62.0])
        {
            assert!((f64::from(hit.score) - score).abs() < 1e-8, "{hit:?}");
        }
    }

    #[test]
    fn equal_rows_keep_their_order_and_no_ranking_is_no_row() {
        let fused = fuse(&[ranking(&[5, 1]), ranking(&[1, 5])], 1);
        assert_eq!(fused.len(), 1);
        assert_eq!(fused[0].index, 1);
        assert!(fuse::<Vec<Hit>>(&[], 5).is_empty());
        assert!(fuse(&[ranking(&[1])], 0).is_empty());
    }
}
