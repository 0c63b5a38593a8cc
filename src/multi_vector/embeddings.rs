//! A set of texts with a vector for each token, and the fingerprint of their model.

use std::borrow::Cow;
use std::sync::Arc;

use isovec_engine::fingerprint::Fingerprint;

use super::MultiVectorEmbedded;
use super::max_sim::Query;
use crate::embeddings::compact::codes::{SIGNS, int8, signs};
use crate::embeddings::{CompactForm, PrecisionDifference, check_comparable, check_compatible};
use crate::error::{Error, Result};
use crate::model::rows::Packed;
use crate::similarity::{Hit, best};

/// The vectors of texts' tokens, one text after another, with the fingerprint of the model. A model's vectors have unit length.
///
/// A search looks at every token of every text, on the calling thread. A score is the same number whatever else is in the set.
#[derive(Debug, Clone, PartialEq)]
pub struct MultiVectorEmbeddings {
    pub(super) dim: usize,
    /// Where the vectors of each text begin, and where the last ones end.
    pub(super) offsets: Vec<usize>,
    pub(super) vectors: Vectors,
    pub(super) token_counts: Vec<u32>,
    pub(super) truncated: Vec<bool>,
    pub(super) fingerprint: Arc<Fingerprint>,
    pub(super) prompt: Option<String>,
    pub(super) model: String,
}

/// Vectors one after another.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Vectors {
    Whole(Vec<f32>),
    /// 8-bit whole numbers, and with what those of each vector are multiplied.
    Int8(Vec<u8>, Vec<f32>),
    /// Signs, whole bytes for each vector.
    Binary(Vec<u8>),
}

/// What is known of a set beside its vectors.
pub(super) struct About {
    pub(super) dim: usize,
    pub(super) token_counts: Vec<u32>,
    pub(super) truncated: Vec<bool>,
    pub(super) fingerprint: Arc<Fingerprint>,
    pub(super) prompt: Option<String>,
    pub(super) model: String,
}

impl MultiVectorEmbeddings {
    /// A set of vectors that come from elsewhere: for each text those of its tokens, `[vectors, dim]`, one after another. Which sets they
    /// can be compared with is the fingerprint's to say. How many tokens the texts have is not known, and is 0.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] for vectors that are not of `dim` components, and for a component that is not finite.
    pub fn new(
        dim: usize,
        texts: impl IntoIterator<Item = Vec<f32>>,
        fingerprint: Fingerprint,
    ) -> Result<Self> {
        let mut set = Self {
            dim,
            offsets: vec![0],
            vectors: Vectors::Whole(Vec::new()),
            token_counts: Vec::new(),
            truncated: Vec::new(),
            fingerprint: Arc::new(fingerprint),
            prompt: None,
            model: String::new(),
        };
        if dim == 0 {
            return Err(Error::InvalidEmbeddings {
                origin: "this set".into(),
                detail: "vectors have at least one component".into(),
            });
        }
        for vectors in texts {
            set.push(MultiVectorEmbedded {
                vectors,
                tokens: 0,
                truncated: false,
            })?;
        }
        Ok(set)
    }

    /// A set of a model's own vectors.
    pub(super) fn of(rows: Vec<Packed>, about: About) -> Self {
        let mut offsets = vec![0];
        offsets.extend(rows.iter().scan(0, |end, row| {
            *end += row.len() / about.dim;
            Some(*end)
        }));
        Self {
            dim: about.dim,
            offsets,
            vectors: Vectors::Whole(rows.concat()),
            token_counts: about.token_counts,
            truncated: about.truncated,
            fingerprint: about.fingerprint,
            prompt: about.prompt,
            model: about.model,
        }
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.token_counts.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.token_counts.is_empty()
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How the vectors are held. `None`: in f32.
    pub fn form(&self) -> Option<CompactForm> {
        match self.vectors {
            Vectors::Whole(_) => None,
            Vectors::Int8(..) => Some(CompactForm::Int8),
            Vectors::Binary(_) => Some(CompactForm::Binary),
        }
    }

    /// Where the vectors of each text begin among those of all, counted in vectors, and at last where they end.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The vectors of the text at `index`, `[vectors, dim]`, one after another, if there is such a text. Of a compact form, the
    /// vectors that its codes stand for.
    pub fn get(&self, index: usize) -> Option<Cow<'_, [f32]>> {
        let (&start, &end) = (self.offsets.get(index)?, self.offsets.get(index + 1)?);
        Some(self.between(start, end))
    }

    /// All vectors, `[vectors, dim]`, where they are in f32.
    pub fn as_slice(&self) -> Option<&[f32]> {
        match &self.vectors {
            Vectors::Whole(values) => Some(values),
            _ => None,
        }
    }

    /// For each text, how many tokens the model saw, special ones included. Fewer of a passage are compared.
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

    /// The same set in a compact form: [`Int8`](CompactForm::Int8) takes a quarter of the bytes, and a scale for each vector,
    /// [`Binary`](CompactForm::Binary) a thirty-second. Scores approximate those of this set.
    #[must_use]
    pub fn compact(&self, form: CompactForm) -> Self {
        let whole = self.between(0, self.offsets[self.len()]);
        let mut codes = Vec::new();
        let mut scales = Vec::new();
        for vector in whole.chunks_exact(self.dim) {
            match form {
                CompactForm::Int8 => scales.push(int8(vector, &mut codes)),
                CompactForm::Binary => signs(vector, &mut codes),
            }
        }
        let vectors = match form {
            CompactForm::Int8 => Vectors::Int8(codes, scales),
            CompactForm::Binary => Vectors::Binary(codes),
        };
        Self {
            vectors,
            offsets: self.offsets.clone(),
            token_counts: self.token_counts.clone(),
            truncated: self.truncated.clone(),
            fingerprint: Arc::clone(&self.fingerprint),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            ..*self
        }
    }

    /// Puts the vectors of a stream's text behind those of this set, which is in f32.
    ///
    /// # Errors
    /// [`Error::InvalidEmbeddings`] for vectors of another number of components or that are not finite, and for a set in a compact
    /// form.
    pub fn push(&mut self, embedded: MultiVectorEmbedded) -> Result<()> {
        let MultiVectorEmbedded {
            vectors,
            tokens,
            truncated,
        } = embedded;
        let fits = vectors.len().is_multiple_of(self.dim) && vectors.iter().all(|x| x.is_finite());
        let (Vectors::Whole(values), true) = (&mut self.vectors, fits) else {
            return Err(Error::InvalidEmbeddings {
                origin: "the text to add".into(),
                detail: format!(
                    "its {} values are not whole vectors of {} components in the set's form",
                    vectors.len(),
                    self.dim
                ),
            });
        };
        values.extend(vectors);
        self.offsets.push(values.len() / self.dim);
        self.token_counts.push(tokens);
        self.truncated.push(truncated);
        Ok(())
    }

    /// Puts the texts of another set of the same model and form behind those of this one.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] when the other set is of another model, [`Error::InvalidEmbeddings`] when it is of another form.
    pub fn append(&mut self, other: Self) -> Result<()> {
        self.check(&other)?;
        match (&mut self.vectors, other.vectors) {
            (Vectors::Whole(own), Vectors::Whole(more)) => own.extend(more),
            (Vectors::Int8(own, own_scales), Vectors::Int8(more, scales)) => {
                own.extend(more);
                own_scales.extend(scales);
            }
            (Vectors::Binary(own), Vectors::Binary(more)) => own.extend(more),
            _ => {
                return Err(Error::InvalidEmbeddings {
                    origin: "the set to append".into(),
                    detail:
                        "it holds its vectors in another form; bring both into one with `compact`"
                            .into(),
                });
            }
        }
        let end = self.offsets[self.len()];
        self.offsets
            .extend(other.offsets[1..].iter().map(|offset| end + offset));
        self.token_counts.extend(other.token_counts);
        self.truncated.extend(other.truncated);
        Ok(())
    }

    /// The `k` texts with the highest scores for each query, best first: one list a query. A score is the sum over the query's
    /// vectors of the largest inner product with a vector of the text. A text without vectors is no hit.
    ///
    /// # Errors
    /// [`Error::IncompatibleIndex`] when the queries are of another model.
    pub fn search(&self, queries: &Self, k: usize) -> Result<Vec<Vec<Hit>>> {
        self.check(queries)?;
        let vectors = (0..queries.len()).filter_map(|query| queries.get(query));
        vectors.map(|vectors| self.nearest(&vectors, k)).collect()
    }

    /// The same for a set of one query, as [`embed_query`](crate::MultiVectorEmbedder::embed_query) gives it.
    ///
    /// # Errors
    /// [`Error::NotOneQuery`] when the set does not have exactly one text; those of [`search`](Self::search).
    pub fn search_one(&self, query: &Self, k: usize) -> Result<Vec<Hit>> {
        self.check(query)?;
        match (query.len(), query.get(0)) {
            (1, Some(vectors)) => self.nearest(&vectors, k),
            (queries, _) => Err(Error::NotOneQuery { queries }),
        }
    }

    fn check(&self, other: &Self) -> Result<()> {
        check_comparable(&self.fingerprint, &other.fingerprint)?;
        if self.dim != other.dim {
            return Err(Error::InvalidEmbeddings {
                origin: "the set to compare with".into(),
                detail: format!(
                    "its vectors have {} components, those of this set {}",
                    other.dim, self.dim
                ),
            });
        }
        Ok(())
    }

    fn nearest(&self, query: &[f32], k: usize) -> Result<Vec<Hit>> {
        let mut hits = Vec::new();
        if !query.is_empty() {
            let query = Query::new(query, self.dim)?;
            query.scores(
                &self.offsets,
                |start, end| self.between(start, end),
                |hit| hits.push(hit),
            )?;
        }
        Ok(best(hits, k))
    }

    /// Vectors by their places among those of all.
    fn between(&self, start: usize, end: usize) -> Cow<'_, [f32]> {
        let dim = self.dim;
        match &self.vectors {
            Vectors::Whole(values) => Cow::Borrowed(&values[start * dim..end * dim]),
            Vectors::Int8(codes, scales) => {
                let codes = codes[start * dim..end * dim].chunks_exact(dim);
                let vectors = codes.zip(&scales[start..end]);
                let values = vectors.flat_map(|(codes, scale)| {
                    codes.iter().map(move |&code| f32::from(code as i8) * scale)
                });
                Cow::Owned(values.collect())
            }
            Vectors::Binary(codes) => {
                // Of unit length, as the vectors were.
                let one = (1.0 / (dim as f64).sqrt()) as f32;
                let bytes = dim.div_ceil(8);
                let codes = codes[start * bytes..end * bytes].chunks_exact(bytes);
                let mut values = Vec::with_capacity((end - start) * dim);
                for codes in codes {
                    let signs = codes.iter().flat_map(|&byte| SIGNS[usize::from(byte)]);
                    values.extend(signs.take(dim).map(|sign| sign * one));
                }
                Cow::Owned(values)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(dim: usize, texts: Vec<Vec<f32>>) -> MultiVectorEmbeddings {
        MultiVectorEmbeddings::new(dim, texts, Fingerprint::default()).unwrap()
    }

    #[test]
    fn vectors_that_make_no_set_are_refused() {
        for (dim, values) in [(2, vec![1.0]), (0, vec![]), (1, vec![f32::INFINITY])] {
            let refused = MultiVectorEmbeddings::new(dim, [values], Fingerprint::default());
            assert_eq!(refused.unwrap_err().kind(), "InvalidEmbeddings");
        }
        let (two, three) = (set(2, vec![vec![1.0; 4]]), set(3, vec![vec![1.0; 3]]));
        assert_eq!(
            two.search(&three, 1).unwrap_err().kind(),
            "InvalidEmbeddings"
        );
        // A text without vectors is no hit, and a query without them has none.
        let some = set(2, vec![vec![], vec![-1.0, 0.0], vec![]]);
        let hits = some
            .search(&set(2, vec![vec![1.0, 0.0], vec![]]), 5)
            .unwrap();
        assert_eq!(
            hits,
            [
                vec![Hit {
                    index: 1,
                    score: -1.0
                }],
                vec![]
            ]
        );
    }

    proptest! {
        /// Texts of any numbers of vectors, some longer than a block.
        #[test]
        fn a_score_is_the_formula_and_does_not_depend_on_the_others(lengths in prop::collection::vec(0usize..400, 1..8), query in 1usize..40, dim in 1usize..40, seed in any::<u32>()) {
            let mut state = seed;
            let mut values = |many: usize| -> Vec<f32> {
                (0..many * dim).map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / 8_388_608.0 - 1.0
                }).collect()
            };
            let texts: Vec<Vec<f32>> = lengths.iter().map(|&many| values(many)).collect();
            let asked = set(dim, vec![values(query)]);
            let own = asked.get(0).unwrap();
            let hits = set(dim, texts.clone()).search_one(&asked, 10).unwrap();
            prop_assert_eq!(hits.len(), lengths.iter().filter(|&&many| many > 0).count());
            for hit in hits {
                let text = &texts[hit.index];
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
                let largest = |a: &[f32]| text.chunks(dim).map(|b| dot(a, b)).fold(f64::NEG_INFINITY, f64::max);
                let score: f64 = own.chunks(dim).map(largest).sum();
                prop_assert!((f64::from(hit.score) - score).abs() <= 1e-4, "{} for {}", hit.score, score);
                let alone = set(dim, vec![text.clone()]).search_one(&asked, 1).unwrap();
                prop_assert_eq!(alone[0].score.to_bits(), hit.score.to_bits());
            }
        }
    }
}
