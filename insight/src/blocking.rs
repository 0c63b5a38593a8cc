//! The same for blocking callers.

use std::path::Path;

use isovec::blocking::Embedder;
use isovec::optimize::budget::Budget;
use isovec::{EmbeddingConfig, ModelSource, Result};

use crate::advisor::{AnalysisContext, Trial, TrialReport, TuneOptions, TuneReport};
use crate::budget::{BudgetOptions, BudgetReport};
use crate::graph::{GraphOptions, ModelGraph};

/// Reads a model's graph; see [`ModelGraph::read`].
///
/// # Errors
/// As there.
pub fn graph(
    source: impl Into<ModelSource>,
    config: EmbeddingConfig,
    options: GraphOptions,
) -> Result<ModelGraph> {
    pollster::block_on(ModelGraph::read(source, config, options))
}

/// Looks for the configuration that is fastest here; see [`advisor::tune`](crate::advisor::tune).
///
/// # Errors
/// As there.
pub fn tune<T: AsRef<str>>(
    source: impl Into<ModelSource>,
    config: EmbeddingConfig,
    texts: &[T],
    options: TuneOptions,
) -> Result<TuneReport> {
    pollster::block_on(crate::advisor::tune(source, config, texts, options))
}

/// Writes the fastest model that keeps a budget; see [`budget::optimize_within`](crate::budget::optimize_within).
///
/// # Errors
/// As there.
pub fn optimize_within(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    budget: &Budget,
    options: BudgetOptions,
) -> Result<BudgetReport> {
    let made = crate::budget::optimize_within(source, folder, config, budget, options);
    pollster::block_on(made)
}

impl From<&Embedder> for AnalysisContext {
    fn from(embedder: &Embedder) -> Self {
        Self::from(&isovec::Embedder::from(embedder.clone()))
    }
}

impl Trial {
    /// Compares two embedders; see [`run`](Self::run).
    ///
    /// # Errors
    /// As there.
    pub fn run_blocking<T: AsRef<str>>(
        &self,
        baseline: &Embedder,
        candidate: &Embedder,
        texts: &[T],
    ) -> Result<TrialReport> {
        let baseline = isovec::Embedder::from(baseline.clone());
        let candidate = isovec::Embedder::from(candidate.clone());
        pollster::block_on(self.run(&baseline, &candidate, texts))
    }
}
