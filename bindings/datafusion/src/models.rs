//! The models that functions compute with, by name.

use std::sync::Arc;

use isovec::{DynamicBatcher, Embedder, Reranker};

use crate::calls::Gate;
use crate::error::{Error, Result};
use crate::space::Space;

/// The models of a session by the names that queries call them. A call without a name gets the first of its kind.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let context = datafusion::prelude::SessionContext::new();
/// use isovec::{Embedder, Reranker, models};
/// use isovec_datafusion::Models;
///
/// let models = Models::new()
///     .with_embedder("small", &Embedder::load(models::ALL_MINILM_L6_V2).await?)
///     .with_embedder("large", &Embedder::load(models::BGE_BASE_EN_V1_5).await?)
///     .with_reranker("cross", &Reranker::load("cross-encoder/ms-marco-MiniLM-L6-v2").await?);
/// isovec_datafusion::register(&context, models)?;
/// context.sql("SELECT embed(body, 'large') FROM docs").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Models {
    embedders: Vec<Arc<Named<Embedder>>>,
    rerankers: Vec<Arc<Named<Reranker>>>,
}

/// A model with a name, and the one queue of all queries.
#[derive(Debug)]
pub(crate) struct Named<H> {
    pub(crate) name: String,
    pub(crate) model: H,
    pub(crate) batcher: DynamicBatcher<H>,
    pub(crate) gate: Gate,
}

impl Named<Embedder> {
    /// What its vectors say of themselves.
    pub(crate) fn space(&self) -> Result<Space, isovec::Error> {
        let empty = self.model.empty_set(&isovec::EmbedOptions::default())?;
        Ok(Space {
            model: self.name.clone(),
            fingerprint: self.model.fingerprint().clone(),
            metric: empty.metric(),
        })
    }
}

impl Models {
    /// No models.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model of vectors. Its queue is its own: calls that do not come from queries wait in another.
    #[must_use]
    pub fn with_embedder(mut self, name: impl Into<String>, embedder: &Embedder) -> Self {
        self.embedders.push(Arc::new(Named {
            name: name.into(),
            model: embedder.clone(),
            batcher: DynamicBatcher::new(embedder),
            gate: Gate::new(),
        }));
        self
    }

    /// Adds a model of relevance.
    #[must_use]
    pub fn with_reranker(mut self, name: impl Into<String>, reranker: &Reranker) -> Self {
        self.rerankers.push(Arc::new(Named {
            name: name.into(),
            model: reranker.clone(),
            batcher: reranker.batcher(),
            gate: Gate::new(),
        }));
        self
    }

    pub(crate) fn has_embedders(&self) -> bool {
        !self.embedders.is_empty()
    }

    pub(crate) fn has_rerankers(&self) -> bool {
        !self.rerankers.is_empty()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(self.has_embedders() || self.has_rerankers()) {
            return Err(Error::NoModels);
        }
        unique("embedder", &self.embedders)?;
        unique("reranker", &self.rerankers)
    }

    pub(crate) fn embedder(
        &self,
        function: &str,
        name: Option<&str>,
    ) -> Result<&Arc<Named<Embedder>>> {
        find(function, "embedder", &self.embedders, name)
    }

    pub(crate) fn reranker(
        &self,
        function: &str,
        name: Option<&str>,
    ) -> Result<&Arc<Named<Reranker>>> {
        find(function, "reranker", &self.rerankers, name)
    }
}

impl From<Embedder> for Models {
    /// One model, by the name that it was loaded by.
    fn from(embedder: Embedder) -> Self {
        Self::new().with_embedder(embedder.model_name(), &embedder)
    }
}

impl From<&Embedder> for Models {
    fn from(embedder: &Embedder) -> Self {
        Self::from(embedder.clone())
    }
}

fn unique<H>(kind: &'static str, models: &[Arc<Named<H>>]) -> Result<()> {
    let mut names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::SameName {
            kind,
            name: pair[0].to_owned(),
        }),
        None => Ok(()),
    }
}

fn find<'a, H>(
    function: &str,
    kind: &'static str,
    models: &'a [Arc<Named<H>>],
    name: Option<&str>,
) -> Result<&'a Arc<Named<H>>> {
    let found = match name {
        None => models.first(),
        Some(name) => models.iter().find(|model| model.name == name),
    };
    found.ok_or_else(|| Error::UnknownModel {
        function: function.to_owned(),
        kind,
        name: name.unwrap_or_default().to_owned(),
        known: models.iter().map(|model| model.name.clone()).collect(),
    })
}
