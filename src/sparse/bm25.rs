//! BM25: sparse vectors by counting, with the tokens of a model's tokenizer.

use std::collections::BTreeMap;
use std::sync::Arc;

use isovec_engine::fingerprint::{DIMENSION, Fingerprint};

use super::SparseEmbeddings;
use super::embeddings::About;
use crate::embedder::Embedder;
use crate::error::{Error, Result};
use crate::model::{Model, Prompt};

/// Texts whose tokens are in memory with their names at a time.
const WINDOW: usize = 1024;

/// Weighs the tokens of texts by how often they occur, by BM25, as search engines do. Nothing is computed by a model; its tokenizer
/// alone is used, so a set of these vectors and one of the model's own are about the same tokens.
///
/// Formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009
/// (<https://doi.org/10.1561/1500000019>), with the idf of Apache Lucene's `BM25Similarity`, which is above 0. Of N passages, n of which
/// have the token t, the weight of t in a passage of d tokens in which it occurs f times is
///
/// ```text
/// ln(1 + (N - n + 0.5) / (n + 0.5)) · f · (k1 + 1) / (f + k1 · (1 - b + b · d / average d))
/// ```
///
/// and its weight in a query is how often it occurs there. The inner product of both is the score. Special tokens are left out, and a
/// text has all its tokens however long it is. Words that the tokenizer does not know are one word, where it has a token for them.
///
/// ```no_run
/// # async fn example() -> isovec::Result<()> {
/// use isovec::{Bm25, Embedder, models};
///
/// let embedder = Embedder::load(models::ALL_MINILM_L6_V2).await?;
/// let bm25 = Bm25::new(&embedder);
/// let passages = ["the cat sleeps by the window", "shares fell after the announcement"];
/// let index = bm25.embed_passages(passages)?;
/// let query = bm25.embed_query("the shares")?;
/// for hit in index.search_one(&query, 1)? {
///     println!("{:.2} {}", hit.score, passages[hit.index]);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Bm25 {
    model: Arc<Model>,
    k1: f64,
    b: f64,
}

impl Bm25 {
    /// With the tokenizer of a loaded model, k1 = 1.2 and b = 0.75.
    pub fn new(embedder: &Embedder) -> Self {
        Self {
            model: Arc::clone(&embedder.model),
            k1: 1.2,
            b: 0.75,
        }
    }

    /// Sets how fast the weight of a token that occurs again stops growing (`k1`, from 0 on; 0: it does not grow), and how much a
    /// passage's length counts (`b`, from 0 to 1; 0: not at all).
    ///
    /// # Errors
    /// [`Error::Config`] for numbers outside.
    pub fn with_parameters(mut self, k1: f64, b: f64) -> Result<Self> {
        let mut faults = Vec::new();
        if !(k1.is_finite() && k1 >= 0.0) {
            faults.push(format!(
                "k1 of BM25 is {k1}, and has to be a number from 0 on"
            ));
        }
        if !(0.0..=1.0).contains(&b) {
            faults.push(format!(
                "b of BM25 is {b}, and has to be a number from 0 to 1"
            ));
        }
        if !faults.is_empty() {
            return Err(Error::Config(faults));
        }
        (self.k1, self.b) = (k1, b);
        Ok(self)
    }

    /// Weighs texts to search in. Rare tokens are told from common ones, and long texts from short ones, by these texts alone: the
    /// vectors of two calls belong to two searches. A text without tokens has an empty vector.
    ///
    /// # Errors
    /// [`Error::Tokenize`], and [`Error::Config`] for a model that reads no texts.
    pub fn embed_passages<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<SparseEmbeddings> {
        let rows = self.counted(texts)?;
        let all = rows.len() as f64;
        let mut holding: BTreeMap<u32, u64> = BTreeMap::new();
        for id in rows.iter().flat_map(|row| row.counts.keys()) {
            *holding.entry(*id).or_default() += 1;
        }
        let tokens: f64 = rows.iter().map(|row| f64::from(row.tokens)).sum();
        let average = tokens / all;
        let weighed = rows.iter().map(|Counted { counts, tokens }| {
            let length = 1.0 - self.b + self.b * f64::from(*tokens) / average;
            let weigh = |(&id, &count): (&u32, &u32)| {
                let n = holding.get(&id).map_or(0.0, |&n| n as f64);
                let idf = ((all - n + 0.5) / (n + 0.5)).ln_1p();
                let count = f64::from(count);
                (idf * count * (self.k1 + 1.0) / (count + self.k1 * length)) as f32
            };
            counts.iter().map(weigh).collect()
        });
        self.set(&rows, weighed.collect(), "passage")
    }

    /// Weighs texts to search with.
    ///
    /// # Errors
    /// As [`embed_passages`](Self::embed_passages).
    pub fn embed_queries<T: AsRef<str>>(
        &self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<SparseEmbeddings> {
        let rows = self.counted(texts)?;
        let weights = |row: &Counted| row.counts.values().map(|&count| count as f32).collect();
        let weighed = rows.iter().map(weights).collect();
        self.set(&rows, weighed, "query")
    }

    /// Weighs a text to search with: a set of one.
    ///
    /// # Errors
    /// As [`embed_passages`](Self::embed_passages).
    pub fn embed_query(&self, text: impl AsRef<str>) -> Result<SparseEmbeddings> {
        self.embed_queries([text])
    }

    /// The tokens of texts, counted.
    fn counted<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Result<Vec<Counted>> {
        let texts: Vec<T> = texts.into_iter().collect();
        let mut rows = Vec::with_capacity(texts.len());
        for window in texts.chunks(WINDOW) {
            for tokens in self.model.tokenize(window, &Prompt::None, false)? {
                let mut row = Counted::default();
                for token in tokens {
                    *row.counts.entry(token.id).or_default() += 1;
                    row.tokens = row.tokens.saturating_add(1);
                }
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn set(
        &self,
        rows: &[Counted],
        weights: Vec<Vec<f32>>,
        role: &str,
    ) -> Result<SparseEmbeddings> {
        let tokenizer = &self.model.reader.texts()?.tokenizer;
        let vocabulary_size = tokenizer.max_id() as usize + 1;
        let own = &self.model.fingerprint.identity;
        let text = own.get("text").cloned().unwrap_or_default();
        let identity = [
            ("tokenizer", tokenizer.identity()),
            ("text", text),
            ("bm25", format!("k1={};b={}", self.k1, self.b)),
            (DIMENSION, vocabulary_size.to_string()),
        ];
        let fingerprint = Fingerprint {
            identity: identity.map(|(key, value)| (key.to_owned(), value)).into(),
            ..Fingerprint::default()
        };
        let about = About {
            vocabulary_size,
            token_counts: rows.iter().map(|row| row.tokens).collect(),
            truncated: vec![false; rows.len()],
            fingerprint: Arc::new(fingerprint),
            prompt: Some(role.to_owned()),
            model: format!("BM25 with the tokenizer of {}", self.model.name),
        };
        let indices: Vec<Vec<u32>> = rows
            .iter()
            .map(|row| row.counts.keys().copied().collect())
            .collect();
        let rows = indices.iter().zip(&weights);
        Ok(SparseEmbeddings::of(
            rows.map(|(indices, weights)| (&indices[..], &weights[..])),
            about,
        ))
    }
}

/// A text's tokens, counted.
#[derive(Debug, Default)]
struct Counted {
    /// How often each token occurs, by its id.
    counts: BTreeMap<u32, u32>,
    /// All of them.
    tokens: u32,
}
