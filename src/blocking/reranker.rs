//! The blocking reranker.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use crate::backend;
use crate::error::Result;
use crate::loading::Loading;
use crate::model::{Model, Pair};
use crate::reranker::{PairScores, RankOptions, Ranked, Relevance, ScoreOptions, Scored};
use crate::source::ModelSource;

/// Loads a reranker while the caller blocks; from [`Reranker::builder`]. Options that are not set are as in
/// [`EmbeddingConfig::default`](crate::EmbeddingConfig).
#[derive(Debug, Clone)]
#[must_use = "nothing is loaded before `load`"]
pub struct RerankerBuilder {
    loading: Loading,
}

ask_for_model!(RerankerBuilder);

impl RerankerBuilder {
    /// Loads the model; see [`isovec::RerankerBuilder::load`](crate::RerankerBuilder::load).
    ///
    /// # Errors
    /// As there.
    pub fn load(self) -> Result<Reranker> {
        let builder = crate::RerankerBuilder {
            loading: self.loading,
        };
        backend::wait(builder.load()).map(Reranker::from)
    }
}

/// A loaded model that ranks documents by their relevance while the caller waits; see [`isovec::Reranker`](crate::Reranker), into
/// which it converts. Clones are cheap and share the model.
#[derive(Debug, Clone)]
pub struct Reranker {
    model: Arc<Model>,
}

impl Reranker {
    /// Loads a model with the default configuration. [`builder`](Self::builder) says more.
    ///
    /// # Errors
    /// As [`RerankerBuilder::load`].
    pub fn load(source: impl Into<ModelSource>) -> Result<Self> {
        Self::builder(source).load()
    }

    /// Options of loading: device, weights, configuration, progress, cancellation.
    pub fn builder(source: impl Into<ModelSource>) -> RerankerBuilder {
        RerankerBuilder::new(source)
    }

    /// Ranks documents by their relevance to a query, the best first.
    ///
    /// # Errors
    /// As [`isovec::Reranker::rank`](crate::Reranker::rank).
    pub fn rank<D: AsRef<str>>(
        &self,
        query: impl AsRef<str>,
        documents: impl IntoIterator<Item = D>,
    ) -> Result<Vec<Ranked>> {
        self.rank_with(query, documents, &RankOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`isovec::Reranker::rank_with`](crate::Reranker::rank_with).
    pub fn rank_with<D: AsRef<str>>(
        &self,
        query: impl AsRef<str>,
        documents: impl IntoIterator<Item = D>,
        options: &RankOptions,
    ) -> Result<Vec<Ranked>> {
        options.check()?;
        let pairs = Pair::with_first(query.as_ref(), documents);
        let scores = self
            .model
            .call_blocking::<Relevance, _>(&pairs, &options.score)?;
        Ok(options.cut(&scores))
    }

    /// The relevance of the second text of each pair to the first, in the order of the pairs.
    ///
    /// # Errors
    /// As [`isovec::Reranker::score`](crate::Reranker::score).
    pub fn score<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
    ) -> Result<PairScores> {
        self.score_with(pairs, &ScoreOptions::default())
    }

    /// The same with options of the call.
    ///
    /// # Errors
    /// As [`isovec::Reranker::score_with`](crate::Reranker::score_with).
    pub fn score_with<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (A, B)>,
        options: &ScoreOptions,
    ) -> Result<PairScores> {
        let pairs = Pair::all(pairs);
        self.model.call_blocking::<Relevance, _>(&pairs, options)
    }

    /// Scores any number of pairs in flat memory: results in order, one a pair; see
    /// [`isovec::Reranker::score_stream`](crate::Reranker::score_stream).
    pub fn score_iter<I, A, B>(
        &self,
        pairs: I,
        options: ScoreOptions,
    ) -> impl Iterator<Item = Result<Scored>> + use<I, A, B>
    where
        I: IntoIterator<Item = (A, B)>,
        A: AsRef<str>,
        B: AsRef<str>,
    {
        let reranker = crate::Reranker::from(self.clone());
        let mut results = Box::pin(reranker.score_stream(stream::iter(pairs), options));
        std::iter::from_fn(move || backend::wait(results.next()))
    }
}

describe_model!(Reranker);

impl From<crate::Reranker> for Reranker {
    fn from(reranker: crate::Reranker) -> Self {
        Self {
            model: reranker.model,
        }
    }
}

impl From<Reranker> for crate::Reranker {
    fn from(reranker: Reranker) -> Self {
        Self {
            model: reranker.model,
        }
    }
}
