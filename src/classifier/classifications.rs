//! The results of a classifier.

use std::sync::Arc;

use serde::Serialize;

/// A label and its score for one text or picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// The label's place among the model's.
    pub index: usize,
    /// Its name.
    pub label: String,
    /// Its score: a probability, unless the model's numbers are wanted as they are.
    pub score: f32,
}

/// The result of a classifier for one text or picture of a stream.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Classified {
    /// All labels, the highest score first; labels of the same score in the model's order.
    pub labels: Vec<Label>,
    /// Tokens that the model saw, special ones included.
    pub tokens: u32,
    /// Whether the model saw only a part of the text.
    pub truncated: bool,
}

/// The results of a classifier: a score for each text, pair or picture and each label, `[n, labels]`. "Text" stands for all three
/// below.
#[derive(Debug, Clone, PartialEq)]
pub struct Classifications {
    pub(super) names: Arc<[String]>,
    pub(super) scores: Vec<f32>,
    pub(super) token_counts: Vec<u32>,
    pub(super) truncated: Vec<bool>,
}

impl Classifications {
    /// Number of texts.
    pub fn len(&self) -> usize {
        self.token_counts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.token_counts.is_empty()
    }

    /// The names of the labels, in the order of [`scores`](Self::scores).
    pub fn labels(&self) -> &[String] {
        &self.names
    }

    /// The scores of a text, one for each label in the model's order.
    pub fn scores(&self, text: usize) -> Option<&[f32]> {
        let labels = self.names.len();
        let start = text.checked_mul(labels)?;
        self.scores.get(start..start.checked_add(labels)?)
    }

    /// All scores, row after row.
    pub fn as_slice(&self) -> &[f32] {
        &self.scores
    }

    /// The block of all scores itself, without a copy.
    pub fn into_vec(self) -> Vec<f32> {
        self.scores
    }

    /// The label of a text with the highest score, the first of those that are equal.
    pub fn best(&self, text: usize) -> Option<Label> {
        self.ranked(text)?.into_iter().next()
    }

    /// All labels of a text, the highest score first; labels of the same score in the model's order.
    pub fn ranked(&self, text: usize) -> Option<Vec<Label>> {
        Some(ranked(&self.names, self.scores(text)?))
    }

    /// Tokens that the model saw of each text, special ones included.
    pub fn token_counts(&self) -> &[u32] {
        &self.token_counts
    }

    /// Whether the model saw only a part, text by text.
    pub fn truncated(&self) -> &[bool] {
        &self.truncated
    }
}

pub(super) fn ranked(names: &[String], scores: &[f32]) -> Vec<Label> {
    let mut labels: Vec<Label> = names
        .iter()
        .zip(scores)
        .enumerate()
        .map(|(index, (label, &score))| Label {
            index,
            label: label.clone(),
            score,
        })
        .collect();
    // Stable: equal scores stay in the model's order.
    labels.sort_by(|a, b| b.score.total_cmp(&a.score));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_comes_first_and_equals_in_order() {
        let set = Classifications {
            names: ["a", "b", "c"].map(String::from).to_vec().into(),
            scores: vec![0.2, 0.6, 0.2, 0.5, 0.0, 0.5],
            token_counts: vec![3, 4],
            truncated: vec![false, true],
        };
        let order = |text| {
            let labels = set.ranked(text).unwrap();
            labels.iter().map(|label| label.index).collect::<Vec<_>>()
        };
        assert_eq!((order(0), order(1)), (vec![1, 0, 2], vec![0, 2, 1]));
        let best = set.best(1).unwrap();
        assert_eq!((best.label.as_str(), best.score), ("a", 0.5));
        assert_eq!(set.scores(1), Some(&[0.5, 0.0, 0.5][..]));
        assert_eq!((set.scores(2), set.ranked(usize::MAX)), (None, None));
        assert_eq!((set.len(), set.is_empty()), (2, false));
    }
}
