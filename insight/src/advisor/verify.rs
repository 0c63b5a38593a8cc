//! Tests a report's suggestions, one by one.

use super::report::OptimizationReport;
use super::trial::Trial;
use isovec::{Embedder, EmbeddingConfig, ModelSource, Result};

impl OptimizationReport {
    /// Tests every suggestion that is a change of the configuration, one at a time, against the embedder of the
    /// report, and stores the result in it. Loads the model for each. Calls `on_step` before each test. Rejected
    /// suggestions go to the end.
    ///
    /// # Errors
    /// Cancellation, and the errors of a [`Trial`]. A change under which the model cannot be loaded gets a warning
    /// that says so.
    pub async fn verify<T: AsRef<str>>(
        &mut self,
        source: impl Into<ModelSource>,
        baseline: &Embedder,
        texts: &[T],
        trial: &Trial,
        mut on_step: impl FnMut(&str),
    ) -> Result<()> {
        let source = source.into();
        trial.check(texts.len())?;
        for suggestion in &mut self.suggestions {
            let Some(patch) = &suggestion.patch else {
                continue;
            };
            on_step(&suggestion.title);
            let tried = async {
                let config = patch.apply(baseline.config())?;
                let candidate = load(&source, config, trial).await?;
                trial.run(baseline, &candidate, texts).await
            };
            match tried.await {
                Ok(report) => suggestion.verified = Some(report),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => suggestion
                    .warnings
                    .push(format!("It could not be tried: {error}")),
            }
        }
        self.sort();
        Ok(())
    }
}

/// The same model under a change. What is kept on a disk would answer for both sides of a trial.
pub(super) async fn load(
    source: &ModelSource,
    mut config: EmbeddingConfig,
    trial: &Trial,
) -> Result<Embedder> {
    config.embedding_cache.disk = None;
    config.embedding_cache.folder = None;
    let mut builder = Embedder::builder(source.clone()).config(config);
    if let Some(cancel) = &trial.cancel {
        builder = builder.cancel(cancel.clone());
    }
    builder.load().await
}
