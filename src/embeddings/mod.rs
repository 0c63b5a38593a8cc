//! A set of vectors with the fingerprint of its model.

pub(crate) mod compact;
mod file;
pub(crate) mod layout;
mod once;
pub(crate) mod saved;

use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::fingerprint::{Fingerprint, Precision};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::similarity::{Hit, Similarity, best, top_k};
use crate::stream::Embedded;

pub use compact::{CompactEmbeddings, CompactForm};

/// Vectors `[n, dim]` in one contiguous, row-major block, in the order of their texts, with the fingerprint of the
/// model.
///
/// Every value is finite. Serialised with serde, a set is `{dim, values, token_counts, truncated,
/// labels, fingerprint, similarity, prompt, model}` with the values in one flat list; to keep a
/// set on disk or send it to a browser, [`save`](Self::save) and [`to_bytes`](Self::to_bytes)
/// write a compact file instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct Embeddings {
    dim: usize,
    values: Vec<f32>,
    token_counts: Vec<u32>,
    truncated: Vec<bool>,
    labels: Option<Vec<String>>,
    /// The model's own, which all its sets share.
    #[serde(with = "shared")]
    fingerprint: Arc<Fingerprint>,
    #[serde(rename = "similarity")]
    metric: Similarity,
    prompt: Option<String>,
    model: String,
}

/// The fields of [`Embeddings`] before they are checked against each other.
#[derive(Deserialize)]
pub(crate) struct Parts {
    pub(crate) dim: usize,
    pub(crate) values: Vec<f32>,
    #[serde(default)]
    pub(crate) token_counts: Vec<u32>,
    #[serde(default)]
    pub(crate) truncated: Vec<bool>,
    #[serde(default)]
    pub(crate) labels: Option<Vec<String>>,
    #[serde(with = "shared")]
    pub(crate) fingerprint: Arc<Fingerprint>,
    #[serde(default, rename = "similarity")]
    pub(crate) metric: Similarity,
    #[serde(default)]
    pub(crate) prompt: Option<String>,
    #[serde(default)]
    pub(crate) model: String,
}

/// A shared value, written and read as the value.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        value: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        T::serialize(value, serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// Two sets that may be compared although they were computed in different precisions: their scores are close to, but
/// not equal to, those of a single precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrecisionDifference {
    /// The class of this set.
    pub here: Precision,
    /// The class of the other.
    pub there: Precision,
}

/// Whether vectors of two fingerprints may be compared, and if so, whether they were computed in different precisions.
///
/// # Errors
/// [`Error::IncompatibleIndex`] with every entry that differs.
pub(crate) fn check_compatible(
    own: &Fingerprint,
    other: &Fingerprint,
) -> Result<Option<PrecisionDifference>> {
    let differences = own.differences(other);
    if !differences.is_empty() {
        return Err(Error::IncompatibleIndex { differences });
    }
    let (here, there) = (own.precision, other.precision);
    Ok((here != there).then_some(PrecisionDifference { here, there }))
}

/// Whether vectors of two fingerprints may be compared; says in the log what is taken on trust.
///
/// # Errors
/// As [`check_compatible`].
pub(crate) fn check_comparable(own: &Fingerprint, other: &Fingerprint) -> Result<()> {
    if let Some(PrecisionDifference { here, there }) = check_compatible(own, other)? {
        tracing::warn!(
            ?here,
            ?there,
            "comparing vectors that were computed in another numeric class"
        );
    }
    for doubt in own.doubts(other) {
        // The same model with itself, again and again.
        if own == other {
            tracing::debug!(%doubt, "comparing vectors on trust");
        } else {
            tracing::warn!(%doubt, "comparing vectors on trust");
        }
    }
    Ok(())
}

impl Embeddings {
    /// A set from vectors in one row-major block, and the fingerprint of the model that made them.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] when `dim` is 0, the block is not a whole number of rows, or
    /// a value is not finite.
    pub fn new(dim: usize, values: Vec<f32>, fingerprint: Fingerprint) -> Result<Self> {
        Self::from_parts(
            "this block of values",
            Parts {
                dim,
                values,
                token_counts: Vec::new(),
                truncated: Vec::new(),
                labels: None,
                fingerprint: Arc::new(fingerprint),
                metric: Similarity::default(),
                prompt: None,
                model: String::new(),
            },
        )
    }

    pub(crate) fn from_parts(origin: &str, parts: Parts) -> Result<Self> {
        let fail = |detail: String| {
            Err(Error::InvalidEmbeddings {
                origin: origin.to_owned(),
                detail,
            })
        };
        let Parts {
            dim,
            values,
            mut token_counts,
            mut truncated,
            labels,
            fingerprint,
            metric,
            prompt,
            model,
        } = parts;
        if dim == 0 {
            return fail("the dimension is 0".into());
        }
        if values.len() % dim != 0 {
            return fail(format!("{} values do not make rows of {dim}", values.len()));
        }
        let rows = values.len() / dim;
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return fail(format!(
                "the value {} of row {} is not finite",
                at % dim,
                at / dim
            ));
        }
        if token_counts.is_empty() {
            token_counts = vec![0; rows];
        }
        if truncated.is_empty() {
            truncated = vec![false; rows];
        }
        let lengths = [
            ("token counts", token_counts.len()),
            ("truncation marks", truncated.len()),
            ("labels", labels.as_ref().map_or(rows, Vec::len)),
        ];
        for (what, len) in lengths {
            if len != rows {
                return fail(format!("there are {len} {what} for {rows} rows"));
            }
        }
        Ok(Self {
            dim,
            values,
            token_counts,
            truncated,
            labels,
            fingerprint,
            metric,
            prompt,
            model,
        })
    }

    /// The same with the first `dim` components of every vector, at most as many as there are, and
    /// what `each` makes of them, which is given the row's place.
    pub(crate) fn cut(
        mut self,
        dim: usize,
        fingerprint: Arc<Fingerprint>,
        mut each: impl FnMut(usize, &mut [f32]) -> Result<()>,
    ) -> Result<Self> {
        let rows = self.len();
        for row in 0..rows {
            let (from, to) = (row * self.dim, row * dim);
            // Never over a row that is still to come.
            self.values.copy_within(from..from + dim, to);
            each(row, &mut self.values[to..to + dim])?;
        }
        self.values.truncate(rows * dim);
        self.values.shrink_to_fit();
        self.dim = dim;
        self.fingerprint = fingerprint;
        Ok(self)
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.token_counts.len()
    }

    /// Whether there is no vector.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Components of each vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The vector at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<&[f32]> {
        let start = index.checked_mul(self.dim)?;
        self.values.get(start..start.checked_add(self.dim)?)
    }

    /// The vectors in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f32> {
        self.values.chunks_exact(self.dim)
    }

    /// All values, row after row.
    pub fn as_slice(&self) -> &[f32] {
        &self.values
    }

    /// The block itself, without a copy.
    pub fn into_vec(self) -> Vec<f32> {
        self.values
    }

    /// One `Vec` a vector, copied.
    pub fn into_vecs(self) -> Vec<Vec<f32>> {
        self.iter().map(<[f32]>::to_vec).collect()
    }

    /// A `[n, dim]` view for ndarray.
    pub fn view(&self) -> ndarray::ArrayView2<'_, f32> {
        // Rows times components is the length by construction, so this is never the fallback.
        ndarray::ArrayView2::from_shape((self.len(), self.dim), &self.values)
            .unwrap_or_else(|_| ndarray::aview2::<f32, 0>(&[]))
    }

    /// For each text, whether the model saw only a part of it.
    pub fn truncated(&self) -> &[bool] {
        &self.truncated
    }

    /// For each text, how many tokens the model saw, special ones included; 0 where the set was
    /// made without texts.
    pub fn token_counts(&self) -> &[u32] {
        &self.token_counts
    }

    /// The labels of the vectors, if they were set with [`with_labels`](Self::with_labels).
    pub fn labels(&self) -> Option<&[String]> {
        self.labels.as_deref()
    }

    /// Sets a label for each vector: an id, a place, or the text itself. Labels are saved with the vectors.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] when there is not exactly one label a vector.
    pub fn with_labels(
        mut self,
        labels: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self> {
        let labels: Vec<String> = labels.into_iter().map(Into::into).collect();
        if labels.len() != self.len() {
            return Err(Error::InvalidEmbeddings {
                origin: "this set of labels".into(),
                detail: format!("there are {} labels for {} rows", labels.len(), self.len()),
            });
        }
        self.labels = Some(labels);
        Ok(self)
    }

    /// The fingerprint of the model that made the vectors.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// How the model means its vectors to be compared.
    pub fn metric(&self) -> Similarity {
        self.metric
    }

    /// The name of the prompt that was put before the texts, if one was.
    pub fn prompt(&self) -> Option<&str> {
        self.prompt.as_deref()
    }

    /// The model's name, for messages; empty when unknown.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether vectors of another fingerprint may be compared with these, and if so, whether they were computed in
    /// another precision. [`Fingerprint::doubts`] lists entries that are not verified.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] with every entry that differs.
    pub fn check_compatible(&self, other: &Fingerprint) -> Result<Option<PrecisionDifference>> {
        check_compatible(&self.fingerprint, other)
    }

    /// The `k` vectors most alike each query, best first, by the model's own
    /// [`metric`](Self::metric): one list a query, in the queries' order. Exact; every vector is
    /// looked at.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] when the queries were not made as these vectors were.
    pub fn search(&self, queries: &Self, k: usize) -> Result<Vec<Vec<Hit>>> {
        comparable(&self.fingerprint, self.dim, queries)?;
        Ok(queries.iter().map(|query| self.nearest(query, k)).collect())
    }

    /// The `k` vectors most alike one query, best first: a set of one vector, as
    /// [`embed_query`](crate::Embedder::embed_query) gives it.
    ///
    /// # Errors
    /// [`Error::NotOneQuery`] when the set does not have exactly one vector; those of
    /// [`search`](Self::search).
    pub fn search_one(&self, query: &Self, k: usize) -> Result<Vec<Hit>> {
        comparable(&self.fingerprint, self.dim, query)?;
        Ok(self.nearest(query.one()?, k))
    }

    /// The `k` best of these hits by the scores of this set, best first: for hits of a
    /// [compact set](CompactEmbeddings) of the same rows, whose scores are less accurate.
    ///
    /// # Errors
    /// As [`search_one`](Self::search_one), and [`Error::InvalidEmbeddings`] for a hit that this set has no row for.
    pub fn rescored(&self, query: &Self, hits: &[Hit], k: usize) -> Result<Vec<Hit>> {
        comparable(&self.fingerprint, self.dim, query)?;
        let vector = query.one()?;
        rescored(hits, k, self.len(), |index| {
            self.metric
                .score(vector, &self.values[index * self.dim..][..self.dim])
        })
    }

    /// The only vector of a set of queries.
    fn one(&self) -> Result<&[f32]> {
        match (self.len(), self.get(0)) {
            (1, Some(vector)) => Ok(vector),
            (queries, _) => Err(Error::NotOneQuery { queries }),
        }
    }

    fn nearest(&self, query: &[f32], k: usize) -> Vec<Hit> {
        top_k(self.iter().map(|row| self.metric.score(query, row)), k)
    }

    /// The score of every pair by the model's own [`metric`](Self::metric), `[n, m]` for `n`
    /// vectors here and `m` there; larger is more alike.
    ///
    /// # Errors
    /// As [`search`](Self::search), and
    /// [`InputTooLarge`](isovec_engine::EngineError::InputTooLarge) for more scores than fit into
    /// memory.
    pub fn similarity(&self, other: &Self) -> Result<ndarray::Array2<f32>> {
        comparable(&self.fingerprint, self.dim, other)?;
        let shape = (self.len(), other.len());
        let mut scores = Vec::new();
        let reserved = shape
            .0
            .checked_mul(shape.1)
            .map(|pairs| scores.try_reserve_exact(pairs));
        let too_large = || EngineError::InputTooLarge {
            asked: (shape.0 as u64).saturating_mul(shape.1 as u64),
            limit: (isize::MAX as usize / size_of::<f32>()) as u64,
            unit: "scores that fit into memory",
        };
        let Some(Ok(())) = reserved else {
            return Err(too_large().into());
        };
        let rows = self.iter();
        scores.extend(rows.flat_map(|a| other.iter().map(|b| self.metric.score(a, b))));
        // A score a pair by construction, so that this never fails.
        ndarray::Array2::from_shape_vec(shape, scores).map_err(|_| too_large().into())
    }

    /// Adds another set's vectors after these.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] when they were not made the same way;
    /// [`Error::InvalidEmbeddings`] when the dimensions differ or only one side has labels.
    pub fn extend(&mut self, other: Self) -> Result<()> {
        self.check_compatible(&other.fingerprint)?;
        let fail = |detail: String| {
            Err(Error::InvalidEmbeddings {
                origin: "the added set".into(),
                detail,
            })
        };
        if self.dim != other.dim {
            return fail(format!(
                "its vectors have {} components, not {}",
                other.dim, self.dim
            ));
        }
        match (&mut self.labels, other.labels) {
            (Some(labels), Some(more)) => labels.extend(more),
            (None, None) => {}
            (Some(_), None) => return fail("it has no labels, and this set has".into()),
            (None, Some(_)) => return fail("it has labels, and this set has none".into()),
        }
        self.values.extend(other.values);
        self.token_counts.extend(other.token_counts);
        self.truncated.extend(other.truncated);
        Ok(())
    }

    /// Adds one vector of a stream after these; [`Embedder::empty_set`](crate::Embedder::empty_set) makes an empty
    /// set.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] when the dimension is another, a value is not finite, or this
    /// set has labels.
    pub fn push(&mut self, row: Embedded) -> Result<()> {
        let fail = |detail: String| {
            Err(Error::InvalidEmbeddings {
                origin: "the added vector".into(),
                detail,
            })
        };
        if row.vector.len() != self.dim {
            return fail(format!(
                "it has {} components, not {}",
                row.vector.len(),
                self.dim
            ));
        }
        if let Some(at) = row.vector.iter().position(|value| !value.is_finite()) {
            return fail(format!("its value {at} is not finite"));
        }
        if self.labels.is_some() {
            return fail("it has no label, and this set has labels".into());
        }
        self.values.extend(row.vector);
        self.token_counts.push(row.tokens);
        self.truncated.push(row.truncated);
        Ok(())
    }
}

/// Whether another set's vectors may be compared with those of a set; says what is taken on trust.
fn comparable(fingerprint: &Fingerprint, dim: usize, other: &Embeddings) -> Result<()> {
    check_comparable(fingerprint, &other.fingerprint)?;
    if dim != other.dim {
        return Err(Error::InvalidEmbeddings {
            origin: "the set to compare with".into(),
            detail: format!(
                "its vectors have {} components, those of this set {dim}",
                other.dim
            ),
        });
    }
    Ok(())
}

/// The `k` best of these hits by other scores of the same rows.
fn rescored(hits: &[Hit], k: usize, rows: usize, score: impl Fn(usize) -> f32) -> Result<Vec<Hit>> {
    if let Some(hit) = hits.iter().find(|hit| hit.index >= rows) {
        return Err(Error::InvalidEmbeddings {
            origin: "this set".into(),
            detail: format!(
                "a hit is row {}, and it has {rows} rows; take hits of a set of the same rows",
                hit.index
            ),
        });
    }
    let again = hits.iter().map(|hit| Hit {
        index: hit.index,
        score: score(hit.index),
    });
    Ok(best(again, k))
}

impl TryFrom<Parts> for Embeddings {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        Self::from_parts("the serialised set", parts)
    }
}

impl<'a> IntoIterator for &'a Embeddings {
    type Item = &'a [f32];
    type IntoIter = std::slice::ChunksExact<'a, f32>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three unit vectors of a pretended model.
    pub(crate) fn sample() -> Embeddings {
        let mut fingerprint = Fingerprint::default();
        fingerprint.identity.insert("weights".into(), "abc".into());
        fingerprint.identity.insert("pooling".into(), "mean".into());
        let values = vec![1.0, 0.0, 0.6, 0.8, 0.0, -1.0];
        Embeddings::new(2, values, fingerprint).unwrap()
    }

    #[test]
    fn rows_views_and_copies_agree() {
        let set = sample();
        assert_eq!((set.len(), set.dim()), (3, 2));
        assert_eq!(set.get(1), Some(&[0.6, 0.8][..]));
        assert_eq!(set.get(3), None);
        assert_eq!(set.get(usize::MAX), None);
        assert_eq!(set.view().shape(), [3, 2]);
        assert_eq!(set.view()[[2, 1]], -1.0);
        assert_eq!(set.iter().count(), 3);
        assert_eq!(set.clone().into_vecs()[2], [0.0, -1.0]);
        assert_eq!(set.clone().into_vec(), set.as_slice());
    }

    #[test]
    fn an_empty_set_keeps_its_dimension() {
        let empty = Embeddings::new(384, Vec::new(), Fingerprint::default()).unwrap();
        assert!(empty.is_empty());
        assert_eq!(empty.view().shape(), [0, 384]);
        assert!(empty.search(&empty, 5).unwrap().is_empty());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let make =
            |dim, values: &[f32]| Embeddings::new(dim, values.to_vec(), Fingerprint::default());
        for result in [
            make(0, &[]),
            make(2, &[1.0; 3]),
            make(2, &[1.0, f32::NAN]),
            make(1, &[f32::INFINITY]),
        ] {
            assert_eq!(result.unwrap_err().kind(), "InvalidEmbeddings");
        }
        assert_eq!(
            sample().with_labels(["one"]).unwrap_err().kind(),
            "InvalidEmbeddings"
        );
    }

    #[test]
    fn search_finds_the_nearest_and_refuses_strangers() {
        let set = sample();
        let query = Embeddings::new(2, vec![0.0, 2.0], set.fingerprint().clone()).unwrap();
        let hits = set.search(&query, 2).unwrap();
        assert_eq!(
            hits[0].iter().map(|hit| hit.index).collect::<Vec<_>>(),
            [1, 0]
        );
        assert!((hits[0][0].score - 0.8).abs() < 1e-7);

        let mut other = set.fingerprint().clone();
        other.identity.insert("pooling".into(), "cls".into());
        let stranger = Embeddings::new(2, vec![0.0, 2.0], other).unwrap();
        let error = set.search(&stranger, 2).unwrap_err();
        assert_eq!(error.kind(), "IncompatibleIndex");
        assert!(
            error.to_string().contains("pooling: mean here, cls there"),
            "{error}"
        );
    }

    #[test]
    fn one_query_has_one_list_of_hits() {
        let set = sample();
        let queries = |values: &[f32]| {
            Embeddings::new(2, values.to_vec(), set.fingerprint().clone()).unwrap()
        };
        let one = queries(&[0.0, 2.0]);
        assert_eq!(
            set.search_one(&one, 2).unwrap(),
            set.search(&one, 2).unwrap()[0]
        );
        assert!(set.search_one(&one, 0).unwrap().is_empty());
        for (values, queries_in) in [(&[][..], 0), (&[0.0, 2.0, 1.0, 0.0][..], 2)] {
            let error = set.search_one(&queries(values), 2).unwrap_err();
            assert!(matches!(error, Error::NotOneQuery { queries } if queries == queries_in));
        }
        let stranger = Embeddings::new(2, vec![0.0, 2.0], Fingerprint::default()).unwrap();
        let error = set.search_one(&stranger, 2).unwrap_err();
        assert_eq!(error.kind(), "IncompatibleIndex");
    }

    #[test]
    fn every_pair_has_its_score_in_the_models_metric() {
        let set = sample();
        let two = vec![0.0, 2.0, 3.0, 4.0];
        let mut other = Embeddings::new(2, two, set.fingerprint().clone()).unwrap();
        let scores = set.similarity(&other).unwrap();
        assert_eq!(scores.dim(), (3, 2));
        let cosines = [[0.0, 0.6], [0.8, 1.0], [-1.0, -0.8]];
        for (at, score) in scores.indexed_iter() {
            assert!(
                (score - cosines[at.0][at.1]).abs() < 1e-6,
                "{at:?}: {score}"
            );
        }
        let mut dot = set.clone();
        dot.metric = Similarity::Dot;
        assert!((dot.similarity(&other).unwrap()[[1, 1]] - 5.0).abs() < 1e-6);
        let none = Embeddings::new(2, Vec::new(), set.fingerprint().clone()).unwrap();
        assert_eq!(set.similarity(&none).unwrap().dim(), (3, 0));
        other.dim = 4;
        assert_eq!(
            set.similarity(&other).unwrap_err().kind(),
            "InvalidEmbeddings"
        );
        let stranger = Embeddings::new(2, vec![0.0, 2.0], Fingerprint::default()).unwrap();
        let error = set.similarity(&stranger).unwrap_err();
        assert_eq!(error.kind(), "IncompatibleIndex");
    }

    #[test]
    fn another_precision_is_reported_and_searched() {
        let set = sample();
        let other = Fingerprint {
            precision: Precision::Int8,
            ..set.fingerprint().clone()
        };
        let found = set.check_compatible(&other).unwrap();
        assert_eq!(
            found,
            Some(PrecisionDifference {
                here: Precision::F32,
                there: Precision::Int8
            })
        );
        let query = Embeddings::new(2, vec![0.0, 2.0], other).unwrap();
        assert_eq!(set.search(&query, 1).unwrap()[0][0].index, 1);
    }

    #[test]
    fn sets_are_joined_only_when_they_fit() {
        let mut set = sample();
        set.extend(sample()).unwrap();
        assert_eq!(
            (set.len(), set.truncated().len(), set.token_counts().len()),
            (6, 6, 6)
        );
        assert!(
            set.extend(sample().with_labels(["a", "b", "c"]).unwrap())
                .is_err()
        );
        assert_eq!(set.len(), 6);
    }

    #[test]
    fn a_streams_vector_is_added_only_when_it_fits() {
        let row = |vector: &[f32]| Embedded {
            vector: vector.to_vec(),
            tokens: 5,
            truncated: true,
        };
        let mut set = sample();
        set.push(row(&[0.0, 1.0])).unwrap();
        assert_eq!(set.get(3), Some(&[0.0, 1.0][..]));
        assert_eq!((set.token_counts()[3], set.truncated()[3]), (5, true));
        for wrong in [&[1.0][..], &[0.0, f32::NAN]] {
            assert_eq!(
                set.push(row(wrong)).unwrap_err().kind(),
                "InvalidEmbeddings"
            );
        }
        let mut labelled = sample().with_labels(["a", "b", "c"]).unwrap();
        assert!(labelled.push(row(&[0.0, 1.0])).is_err());
        assert_eq!((set.len(), labelled.len()), (4, 3));
    }

    #[test]
    fn json_keeps_every_bit_and_is_checked() {
        let set = sample().with_labels(["a", "b", "c"]).unwrap();
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<Embeddings>(&json).unwrap(), set);
        let broken = json.replace("\"dim\":2", "\"dim\":4");
        assert!(serde_json::from_str::<Embeddings>(&broken).is_err());
    }
}
