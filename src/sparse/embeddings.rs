//! A set of sparse vectors with the fingerprint of its model.

use std::sync::Arc;

use isovec_engine::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

use super::vector::{SparseRow, SparseVector};
use crate::embeddings::{PrecisionDifference, check_comparable, check_compatible, shared};
use crate::error::{Error, Result};
use crate::similarity::{Hit, top_k};

/// Sparse vectors in the order of their texts, one after another in two flat lists (compressed sparse rows), with the fingerprint
/// of the model.
///
/// Serialised with serde, a set is `{vocabulary_size, offsets, indices, values, token_counts, truncated, fingerprint, prompt,
/// model}`; reading checks every list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SparseParts")]
pub struct SparseEmbeddings {
    pub(super) vocabulary_size: usize,
    pub(super) offsets: Vec<usize>,
    pub(super) indices: Vec<u32>,
    pub(super) values: Vec<f32>,
    pub(super) token_counts: Vec<u32>,
    pub(super) truncated: Vec<bool>,
    #[serde(with = "shared")]
    pub(super) fingerprint: Arc<Fingerprint>,
    pub(super) prompt: Option<String>,
    pub(super) model: String,
}

/// The fields of [`SparseEmbeddings`] before they are checked against each other.
#[derive(Deserialize)]
pub(super) struct SparseParts {
    pub(super) vocabulary_size: usize,
    pub(super) offsets: Vec<usize>,
    pub(super) indices: Vec<u32>,
    pub(super) values: Vec<f32>,
    pub(super) token_counts: Vec<u32>,
    pub(super) truncated: Vec<bool>,
    #[serde(with = "shared")]
    pub(super) fingerprint: Arc<Fingerprint>,
    pub(super) prompt: Option<String>,
    pub(super) model: String,
}

impl TryFrom<SparseParts> for SparseEmbeddings {
    type Error = Error;

    fn try_from(parts: SparseParts) -> Result<Self> {
        parts.checked("this set of sparse vectors")
    }
}

impl SparseParts {
    /// The set; `origin` names it in messages.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] where the fields do not belong together.
    pub(super) fn checked(self, origin: &str) -> Result<SparseEmbeddings> {
        let Self {
            vocabulary_size,
            offsets,
            indices,
            values,
            token_counts,
            truncated,
            fingerprint,
            prompt,
            model,
        } = self;
        let invalid = |detail: String| Error::InvalidEmbeddings {
            origin: origin.to_owned(),
            detail,
        };
        let rows = token_counts.len();
        let ends = [offsets.first().copied(), offsets.last().copied()];
        if offsets.len() != rows + 1
            || ends != [Some(0), Some(indices.len())]
            || !offsets.is_sorted()
            || indices.len() != values.len()
            || truncated.len() != rows
        {
            return Err(invalid(format!(
                "{} offsets, {} indices, {} values and {} truncation marks do not make {rows} rows",
                offsets.len(),
                indices.len(),
                values.len(),
                truncated.len()
            )));
        }
        if !values.iter().all(|&value| value.is_finite() && value > 0.0) {
            return Err(invalid("a weight is not a number above 0".into()));
        }
        for (row, ends) in offsets.windows(2).enumerate() {
            let row_indices = &indices[ends[0]..ends[1]];
            let ascending = row_indices.windows(2).all(|pair| pair[0] < pair[1]);
            let inside = row_indices
                .last()
                .is_none_or(|&last| (last as usize) < vocabulary_size);
            if !ascending || !inside {
                return Err(invalid(format!(
                    "the indices of row {row} do not ascend below {vocabulary_size}"
                )));
            }
        }
        Ok(SparseEmbeddings {
            vocabulary_size,
            offsets,
            indices,
            values,
            token_counts,
            truncated,
            fingerprint,
            prompt,
            model,
        })
    }
}

/// What is known of a set beside its vectors.
pub(super) struct About {
    pub(super) vocabulary_size: usize,
    pub(super) token_counts: Vec<u32>,
    pub(super) truncated: Vec<bool>,
    pub(super) fingerprint: Arc<Fingerprint>,
    pub(super) prompt: Option<String>,
    pub(super) model: String,
}

impl SparseEmbeddings {
    /// A set of a model's own vectors, which are in order.
    pub(super) fn of<'a>(rows: impl Iterator<Item = (&'a [u32], &'a [f32])>, about: About) -> Self {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (row_indices, row_values) in rows {
            indices.extend_from_slice(row_indices);
            values.extend_from_slice(row_values);
            offsets.push(indices.len());
        }
        Self {
            vocabulary_size: about.vocabulary_size,
            offsets,
            indices,
            values,
            token_counts: about.token_counts,
            truncated: about.truncated,
            fingerprint: about.fingerprint,
            prompt: about.prompt,
            model: about.model,
        }
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.token_counts.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.token_counts.is_empty()
    }

    /// Words that can have a weight: every index is smaller.
    pub fn vocabulary_size(&self) -> usize {
        self.vocabulary_size
    }

    /// The vector at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<SparseRow<'_>> {
        let (&start, &end) = (self.offsets.get(index)?, self.offsets.get(index + 1)?);
        Some(SparseRow {
            indices: &self.indices[start..end],
            values: &self.values[start..end],
        })
    }

    /// The vectors in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = SparseRow<'_>> {
        self.offsets.windows(2).map(|ends| SparseRow {
            indices: &self.indices[ends[0]..ends[1]],
            values: &self.values[ends[0]..ends[1]],
        })
    }

    /// Where each vector begins in [`indices`](Self::indices) and [`values`](Self::values), and at last where they end: the row
    /// pointers of a CSR matrix `[n, vocabulary]`.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The token ids of all vectors, one vector after another, ascending in each.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The weights of all vectors, in the order of [`indices`](Self::indices).
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// For each text, how many tokens the model saw, special ones included.
    pub fn token_counts(&self) -> &[u32] {
        &self.token_counts
    }

    /// For each text, whether the model saw only a part of it.
    pub fn truncated(&self) -> &[bool] {
        &self.truncated
    }

    /// The fingerprint of the model that made the vectors.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// The name of the prompt that was put before the texts, if one was.
    pub fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// The model's name, for messages.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether vectors of another fingerprint may be compared with these, as
    /// [`Embeddings::check_compatible`](crate::Embeddings::check_compatible) says it.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] with every entry that differs.
    pub fn check_compatible(&self, other: &Fingerprint) -> Result<Option<PrecisionDifference>> {
        check_compatible(&self.fingerprint, other)
    }

    /// A copy in which every vector has its `most` largest weights alone; of equal ones, those of the smaller index.
    #[must_use]
    pub fn top_k(&self, most: usize) -> Self {
        let rows: Vec<SparseVector> = self.iter().map(|row| row.top_k(most)).collect();
        let rows = rows.iter().map(|row| (&row.indices[..], &row.values[..]));
        let about = About {
            vocabulary_size: self.vocabulary_size,
            token_counts: self.token_counts.clone(),
            truncated: self.truncated.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
        };
        Self::of(rows, about)
    }

    /// The `k` vectors with the largest inner product with each query, best first: one list a query. A vector that shares no word
    /// with a query is no hit. Exact; every vector is looked at.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] when the queries are of another model, and so of another vocabulary.
    pub fn search(&self, queries: &Self, k: usize) -> Result<Vec<Vec<Hit>>> {
        self.check(queries)?;
        Ok(queries.iter().map(|query| self.nearest(query, k)).collect())
    }

    /// The same for a set of one query, as [`embed_query`](crate::SparseEmbedder::embed_query) gives it.
    ///
    /// # Errors
    /// [`Error::NotOneQuery`] when the set does not have exactly one vector; those of [`search`](Self::search).
    pub fn search_one(&self, query: &Self, k: usize) -> Result<Vec<Hit>> {
        self.check(query)?;
        match (query.len(), query.get(0)) {
            (1, Some(row)) => Ok(self.nearest(row, k)),
            (queries, _) => Err(Error::NotOneQuery { queries }),
        }
    }

    fn check(&self, other: &Self) -> Result<()> {
        check_comparable(&self.fingerprint, &other.fingerprint)?;
        if self.vocabulary_size != other.vocabulary_size {
            return Err(Error::InvalidEmbeddings {
                origin: "the set to compare with".into(),
                detail: format!(
                    "its vocabulary has {} words, that of this set {}",
                    other.vocabulary_size, self.vocabulary_size
                ),
            });
        }
        Ok(())
    }

    fn nearest(&self, query: SparseRow<'_>, k: usize) -> Vec<Hit> {
        // Spread out once, so that each vector is walked alone.
        let mut weights = vec![0.0; self.vocabulary_size];
        for (index, weight) in query.iter() {
            weights[index as usize] = f64::from(weight);
        }
        let scores = self.iter().map(|row| {
            let terms = row
                .iter()
                .map(|(index, weight)| weights[index as usize] * f64::from(weight));
            terms.sum::<f64>() as f32
        });
        let mut hits = top_k(scores, k);
        hits.retain(|hit| hit.score > 0.0);
        hits
    }
}
