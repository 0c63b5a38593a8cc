//! Tests a report's suggestions, one by one.

use super::compared::{compared, rows};
use super::remade::{Sizes, VectorQuality};
#[cfg(not(target_arch = "wasm32"))]
use super::remake;
use super::report::OptimizationReport;
use super::suggestion::{Suggestion, VectorChange};
use super::trial::{Trial, TrialReport};
use isovec::optimize::comparable_texts;
use isovec::{Embedder, EmbeddingConfig, ModelSource, Result};

impl OptimizationReport {
    /// Tests every suggestion that is a change of the configuration or another model, one at a time, against the embedder of the
    /// report, and stores the result in it. Loads the model for each. Calls `on_step` before each test. Rejected
    /// suggestions go to the end.
    ///
    /// Another model is made of `source`, natively alone, in the system's folder for temporary files, and nothing of it is left. The
    /// texts calibrate it, and are what it is compared on: at most 1,000 of them, each once.
    ///
    /// # Errors
    /// Cancellation, and the errors of a [`Trial`]. A change under which the model cannot be loaded, and a model that cannot be made,
    /// get a warning that says so.
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
        let mut tests = Tests {
            source: &source,
            baseline,
            trial,
            texts: texts.iter().map(AsRef::as_ref).collect(),
            before: None,
        };
        for suggestion in &mut self.suggestions {
            if suggestion.patch.is_none() && suggestion.recipe.is_none() {
                continue;
            }
            on_step(&suggestion.title);
            match tests.tried(suggestion).await {
                Ok((report, quality, sizes)) => {
                    suggestion.verified = Some(report);
                    (suggestion.quality, suggestion.sizes) = (quality, sizes);
                }
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

/// What all tests of a report have in common.
struct Tests<'a> {
    source: &'a ModelSource,
    baseline: &'a Embedder,
    trial: &'a Trial,
    texts: Vec<&'a str>,
    /// The texts that vectors are compared on, and those of the baseline; from the first test on that needs them.
    before: Option<(Vec<String>, Vec<f32>)>,
}

type Tried = (TrialReport, Option<VectorQuality>, Option<Sizes>);

impl Tests<'_> {
    async fn tried(&mut self, suggestion: &Suggestion) -> Result<Tried> {
        let Some(patch) = &suggestion.patch else {
            return self.remade(suggestion).await;
        };
        let config = patch.apply(self.baseline.config())?;
        let candidate = load(self.source, config, self.trial).await?;
        let report = self.trial.run(self.baseline, &candidate, &self.texts);
        let report = report.await?;
        // One text alone can be timed, and has nothing to be compared with.
        let by_design = suggestion.vectors != VectorChange::None;
        let quality = match by_design && self.comparable().is_ok() {
            true => Some(self.quality(&candidate).await?),
            false => None,
        };
        Ok((report, quality, None))
    }

    /// Tries another model.
    #[cfg(not(target_arch = "wasm32"))]
    async fn remade(&mut self, suggestion: &Suggestion) -> Result<Tried> {
        let recipe = suggestion.recipe.unwrap_or_default();
        let texts = self.comparable()?;
        let made = remake::made(recipe, self.source, self.baseline, texts, self.trial).await?;
        // Its vectors are others, and that does not end it.
        let mut trial = self.trial.clone();
        trial.gives_up = false;
        let report = trial
            .run(self.baseline, &made.embedder, &self.texts)
            .await?;
        let quality = self.quality(&made.embedder).await?;
        Ok((report, Some(quality), Some(made.sizes)))
    }

    #[cfg(target_arch = "wasm32")]
    async fn remade(&mut self, suggestion: &Suggestion) -> Result<Tried> {
        let id = &suggestion.id;
        let why = format!("the suggestion {id} is another model, which is made natively alone");
        Err(isovec::Error::Config(vec![why]))
    }

    /// The texts that vectors are compared on.
    fn comparable(&self) -> Result<Vec<String>> {
        let texts = self.texts.iter().map(|&text| text.to_owned());
        comparable_texts(texts.collect())
    }

    /// How the vectors of a candidate compare with those of the baseline.
    async fn quality(&mut self, candidate: &Embedder) -> Result<VectorQuality> {
        let (texts, before) = match self.before.take() {
            Some(before) => before,
            None => {
                let texts = self.comparable()?;
                let vectors = rows(self.baseline, &texts, self.trial).await?;
                (texts, vectors)
            }
        };
        let quality = compared(&before, candidate, &texts, self.trial).await?;
        self.before = Some((texts, before));
        Ok((&quality).into())
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
