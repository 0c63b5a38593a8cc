//! Sets of vectors in a quarter or a thirty-second of their bytes, for large indexes and small pages.

pub(crate) mod codes;
mod file;

use std::sync::Arc;

use isovec_engine::fingerprint::Fingerprint;

use super::{Embeddings, PrecisionDifference, check_compatible, comparable, rescored};
use crate::error::{Error, Result};
use crate::similarity::{Hit, Similarity, best, norm, top_k};

/// How a compact set holds its vectors, by the names that sentence-transformers has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompactForm {
    /// 8-bit whole numbers and a scale for each vector: a quarter of the bytes.
    Int8,
    /// The sign of each component: a thirty-second of the bytes. What is found with it should be
    /// [scored again](Embeddings::rescored).
    Binary,
}

impl std::fmt::Display for CompactForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Int8 => "int8",
            Self::Binary => "binary",
        })
    }
}

/// Vectors `[n, dim]` in a compact form, with the fingerprint of the model. A search looks at every vector; queries stay in f32.
///
/// Scores approximate those of [`Embeddings`], which made the set: of int8 by the rounding of the vectors alone, of
/// [`Binary`](CompactForm::Binary) they say an order more than a similarity.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactEmbeddings {
    form: CompactForm,
    dim: usize,
    /// Row by row.
    codes: Vec<u8>,
    /// One for each row of int8, with which codes are multiplied to get the row back; none of signs.
    scales: Vec<f32>,
    /// One over the length of each row's codes, where int8 is compared by the cosine; else none.
    inverse_lengths: Vec<f32>,
    labels: Option<Vec<String>>,
    fingerprint: Arc<Fingerprint>,
    metric: Similarity,
    prompt: Option<String>,
    model: String,
}

/// A search by signs scores this many times the hits that were asked for, those with the fewest signs that differ
/// (`rescore_multiplier` of sentence-transformers).
const CANDIDATES: usize = 4;

impl Embeddings {
    /// The same set in a compact form.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] when the model compares its vectors by a distance, which compact forms do not keep.
    pub fn compact(&self, form: CompactForm) -> Result<CompactEmbeddings> {
        let mut codes = Vec::with_capacity(self.len() * bytes_of_row(form, self.dim));
        let mut scales = Vec::new();
        for row in self {
            match form {
                CompactForm::Int8 => scales.push(codes::int8(row, &mut codes)),
                CompactForm::Binary => codes::signs(row, &mut codes),
            }
        }
        CompactEmbeddings {
            form,
            dim: self.dim,
            codes,
            scales,
            inverse_lengths: Vec::new(),
            labels: self.labels.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            metric: self.metric,
            prompt: self.prompt.clone(),
            model: self.model.clone(),
        }
        .with_lengths("this set")
    }
}

impl CompactEmbeddings {
    /// The set with what its metric needs of the rows' lengths.
    fn with_lengths(mut self, origin: &str) -> Result<Self> {
        match (self.metric, self.form) {
            // The length of what the codes stand for, and not of the vector before: so a vector's own score is 1.
            (Similarity::Cosine, CompactForm::Int8) => {
                let rows = self.codes.chunks_exact(self.dim);
                let inverses = rows.map(|row| inverse(codes::norm_of_int8(row)));
                self.inverse_lengths = inverses.collect();
            }
            (Similarity::Cosine | Similarity::Dot, _) => {}
            (Similarity::Euclidean | Similarity::Manhattan, _) => {
                return Err(Error::InvalidEmbeddings {
                    origin: origin.into(),
                    detail: format!(
                        "its model compares vectors by the {}, which compact forms do not keep; keep the set in f32",
                        self.metric
                    ),
                });
            }
        }
        Ok(self)
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.codes.len() / bytes_of_row(self.form, self.dim)
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How the vectors are held.
    pub fn form(&self) -> CompactForm {
        self.form
    }

    /// The codes, row by row: of [`Int8`](CompactForm::Int8) `dim` bytes a row, each a signed number; of
    /// [`Binary`](CompactForm::Binary) `dim / 8` bytes a row, rounded up, the first component in the highest bit of the first
    /// byte.
    pub fn codes(&self) -> &[u8] {
        &self.codes
    }

    /// Of [`Int8`](CompactForm::Int8) one number for each row, with which its codes are multiplied to get the vector back; none
    /// of [`Binary`](CompactForm::Binary).
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// The texts or names that go with the vectors, if any.
    pub fn labels(&self) -> Option<&[String]> {
        self.labels.as_deref()
    }

    /// The fingerprint of the vectors.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// How the model means its vectors to be compared.
    pub fn metric(&self) -> Similarity {
        self.metric
    }

    /// The model's name, for people.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether vectors of another fingerprint may be compared with these, as
    /// [`Embeddings::check_compatible`] says it.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] with every entry that differs.
    pub fn check_compatible(&self, other: &Fingerprint) -> Result<Option<PrecisionDifference>> {
        check_compatible(&self.fingerprint, other)
    }

    /// The `k` vectors most alike each query, best first: one list a query, in the queries' order. Of
    /// [`Int8`](CompactForm::Int8) every vector is scored; of [`Binary`](CompactForm::Binary) the 4 `k` vectors with the fewest
    /// signs unlike the query's.
    ///
    /// # Errors
    /// As [`Embeddings::search`].
    pub fn search(&self, queries: &Embeddings, k: usize) -> Result<Vec<Vec<Hit>>> {
        comparable(&self.fingerprint, self.dim, queries)?;
        Ok(queries.iter().map(|query| self.nearest(query, k)).collect())
    }

    /// The `k` vectors most alike one query, best first, as [`search`](Self::search) finds them.
    ///
    /// # Errors
    /// As [`Embeddings::search_one`].
    pub fn search_one(&self, query: &Embeddings, k: usize) -> Result<Vec<Hit>> {
        comparable(&self.fingerprint, self.dim, query)?;
        Ok(self.nearest(query.one()?, k))
    }

    /// The `k` best of these hits by the scores of this set, best first: hits of signs, by int8.
    ///
    /// # Errors
    /// As [`Embeddings::rescored`].
    pub fn rescored(&self, query: &Embeddings, hits: &[Hit], k: usize) -> Result<Vec<Hit>> {
        comparable(&self.fingerprint, self.dim, query)?;
        let query = Query::new(self, query.one()?);
        rescored(hits, k, self.len(), |index| query.score(index))
    }

    fn nearest(&self, vector: &[f32], k: usize) -> Vec<Hit> {
        let query = Query::new(self, vector);
        match self.form {
            CompactForm::Int8 => top_k((0..self.len()).map(|index| query.score(index)), k),
            CompactForm::Binary => {
                let mut signs = Vec::new();
                codes::signs(vector, &mut signs);
                let rows = self.codes.chunks_exact(bytes_of_row(self.form, self.dim));
                let alike = rows.map(|row| -(codes::distance(row, &signs) as f32));
                let candidates = top_k(alike, k.saturating_mul(CANDIDATES));
                let again = candidates.into_iter().map(|hit| Hit {
                    score: query.score(hit.index),
                    ..hit
                });
                best(again, k)
            }
        }
    }
}

/// A query of a set.
struct Query<'a> {
    set: &'a CompactEmbeddings,
    vector: &'a [f32],
    /// By which scores are divided.
    length: f64,
    /// With which the product with a row's signs is multiplied: all rows of signs have one length.
    of_signs: f32,
}

impl<'a> Query<'a> {
    fn new(set: &'a CompactEmbeddings, vector: &'a [f32]) -> Self {
        let (length, of_signs) = match set.metric {
            Similarity::Cosine => (norm(vector), inverse((set.dim as f64).sqrt())),
            _ => (1.0, 1.0),
        };
        Self {
            set,
            vector,
            length,
            of_signs,
        }
    }

    /// The score of a row; 0 where the query or the row has no direction.
    fn score(&self, row: usize) -> f32 {
        let bytes = bytes_of_row(self.set.form, self.set.dim);
        let codes = &self.set.codes[row * bytes..][..bytes];
        if self.length == 0.0 {
            return 0.0;
        }
        let (product, factor) = match (self.set.form, self.set.metric) {
            (CompactForm::Int8, Similarity::Cosine) => (
                codes::product_of_int8(self.vector, codes),
                self.set.inverse_lengths[row],
            ),
            (CompactForm::Int8, _) => (
                codes::product_of_int8(self.vector, codes),
                self.set.scales[row],
            ),
            (CompactForm::Binary, _) => {
                (codes::product_of_signs(self.vector, codes), self.of_signs)
            }
        };
        (product * f64::from(factor) / self.length) as f32
    }
}

fn bytes_of_row(form: CompactForm, dim: usize) -> usize {
    match form {
        CompactForm::Int8 => dim,
        CompactForm::Binary => dim.div_ceil(8),
    }
}

/// One over a length, 0 where there is none.
fn inverse(length: f64) -> f32 {
    if length == 0.0 {
        0.0
    } else {
        (1.0 / length) as f32
    }
}

#[cfg(test)]
mod tests;
