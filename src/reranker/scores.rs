//! The results of a reranker.

/// How relevant the documents of pairs are, in the order of the pairs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PairScores {
    /// A number for each pair: more is more relevant.
    pub scores: Vec<f32>,
    /// Tokens that the model saw of each pair, special ones included.
    pub token_counts: Vec<u32>,
    /// Whether the model saw only a part of it, pair by pair.
    pub truncated: Vec<bool>,
}

impl PairScores {
    /// The pairs, the highest score first; pairs of the same score in their order.
    pub fn ranked(&self) -> Vec<Ranked> {
        let seen = self.token_counts.iter().zip(&self.truncated);
        let rows = self.scores.iter().zip(seen).enumerate();
        let mut ranked: Vec<Ranked> = rows
            .map(|(index, (&score, (&tokens, &truncated)))| Ranked {
                index,
                score,
                tokens,
                truncated,
            })
            .collect();
        // Stable: equal scores stay in the order of the pairs.
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score));
        ranked
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = Scored> {
        let seen = self.token_counts.into_iter().zip(self.truncated);
        self.scores
            .into_iter()
            .zip(seen)
            .map(|(score, (tokens, truncated))| Scored {
                score,
                tokens,
                truncated,
            })
    }
}

/// A document of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Ranked {
    /// Its place among the documents that were handed in.
    pub index: usize,
    /// How relevant it is: more is more relevant.
    pub score: f32,
    /// Tokens that the model saw of the query and the document, special ones included.
    pub tokens: u32,
    /// Whether the model saw only a part of them.
    pub truncated: bool,
}

/// The score of one pair of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Scored {
    /// How relevant the document is: more is more relevant.
    pub score: f32,
    /// Tokens that the model saw of the pair, special ones included.
    pub tokens: u32,
    /// Whether the model saw only a part of it.
    pub truncated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_comes_first_and_equals_in_order() {
        let set = PairScores {
            scores: vec![0.5, -1.0, 0.75, 0.5],
            token_counts: vec![3, 4, 5, 6],
            truncated: vec![false, true, false, false],
        };
        let ranked = set.ranked();
        let order: Vec<usize> = ranked.iter().map(|document| document.index).collect();
        assert_eq!(order, [2, 0, 3, 1]);
        let last = ranked[3];
        assert_eq!((last.score, last.tokens, last.truncated), (-1.0, 4, true));
    }
}
