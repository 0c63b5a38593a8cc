//! Tries changes until none helps.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use isovec_engine::maybe_send::{MaybeSend, MaybeSync};
use isovec_engine::profile::ProfileOptions;
use serde::{Deserialize, Serialize};
use web_time::Instant;

use super::context::AnalysisContext;
use super::experiments::experiments;
use super::suggestion::{Suggestion, VectorChange};
use super::trial::{Trial, TrialReport, Verdict};
use super::verify::load;
use super::workload::Workload;
use super::{Advisor, ProfileSummary};
use isovec::hardware::HardwareInfo;
use isovec::{EmbedOptions, Embedder, EmbeddingConfig, ModelSource, Result};

/// How far tuning goes.
#[derive(Clone)]
#[non_exhaustive]
pub struct TuneOptions {
    /// How two configurations are compared, and for which goal.
    pub trial: Trial,
    /// The approximate time limit; the best result until then counts. By default five minutes.
    pub time: Duration,
    /// The allowed change of the vectors; by default none. With `Precision` set the trial's tolerance as well.
    pub vectors: VectorChange,
    /// Rules of the caller's beside isovec's.
    pub advisor: Advisor,
    /// Told of every step when it is over.
    pub on_step: Option<Arc<dyn OnTuneStep>>,
}

impl Default for TuneOptions {
    fn default() -> Self {
        Self {
            trial: Trial {
                gives_up: true,
                ..Trial::default()
            },
            time: Duration::from_secs(300),
            vectors: VectorChange::None,
            advisor: Advisor::new(),
            on_step: None,
        }
    }
}

impl fmt::Debug for TuneOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TuneOptions")
            .field("trial", &self.trial)
            .field("time", &self.time)
            .field("vectors", &self.vectors)
            .field("advisor", &self.advisor)
            .finish_non_exhaustive()
    }
}

/// Hears of steps.
pub trait OnTuneStep: MaybeSend + MaybeSync {
    /// A change was tried.
    fn step(&self, step: &TuneStep);
}

impl<F: Fn(&TuneStep) + MaybeSend + MaybeSync> OnTuneStep for F {
    fn step(&self, step: &TuneStep) {
        self(step);
    }
}

/// A change that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TuneStep {
    /// The change, with the result of its trial.
    pub suggestion: Suggestion,
    /// Whether it is in the result.
    pub kept: bool,
    /// Why it could not be tried.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
}

/// The result of tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TuneReport {
    /// The best configuration that was found.
    pub config: EmbeddingConfig,
    /// Everything that was tried, in order.
    pub steps: Vec<TuneStep>,
    /// The final against the initial configuration; `None` if no change was kept, or if this last trial could not be
    /// finished.
    pub overall: Option<TrialReport>,
    /// Whether everything was tried that might help. Else the time was over.
    pub complete: bool,
}

/// Looks for the configuration that embeds these texts fastest on this machine: tries the advisor's suggestions and
/// neighbouring values of the knobs that matter, keeps changes that a trial shows to be faster with the same vectors,
/// and repeats this until none is. Loads the model for every try.
///
/// # Errors
/// What a [`Trial`] refuses, as loading and embedding under `config`, and [`HardwareInfo::detect`]; that a change cannot be
/// tried is no error.
pub async fn tune<T: AsRef<str>>(
    source: impl Into<ModelSource>,
    config: EmbeddingConfig,
    texts: &[T],
    options: TuneOptions,
) -> Result<TuneReport> {
    let source = source.into();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    options.trial.check(texts.len())?;
    let start = load(&source, config.clone(), &options.trial).await?;
    let mut tuner = Tuner {
        hardware: HardwareInfo::detect().await?,
        best: start.clone(),
        start,
        tried: BTreeSet::from([written(&config)]),
        report: TuneReport {
            config,
            steps: Vec::new(),
            overall: None,
            complete: true,
        },
        until: Instant::now().checked_add(options.time),
        source,
        texts,
        options,
    };
    while tuner.pass().await? {}
    if tuner.has_kept() {
        let trial = &tuner.options.trial;
        let overall = trial.run(&tuner.start, &tuner.best, &tuner.texts).await;
        tuner.report.overall = match overall {
            Ok(overall) => Some(overall),
            Err(error) if error.is_cancelled() => return Err(error),
            // What was found holds without it.
            Err(error) => {
                tracing::warn!(target: "isovec", "the tuned configuration could not be compared with the initial one: {error}");
                None
            }
        };
    }
    Ok(tuner.report)
}

struct Tuner<'a> {
    source: ModelSource,
    texts: Vec<&'a str>,
    options: TuneOptions,
    hardware: HardwareInfo,
    /// `None`: later than any time.
    until: Option<Instant>,
    start: Embedder,
    best: Embedder,
    /// Configurations, as they are written, and changes that led to none.
    tried: BTreeSet<String>,
    report: TuneReport,
}

impl Tuner<'_> {
    /// Tries changes of the best configuration; returns whether one helped and there is time to go on.
    async fn pass(&mut self) -> Result<bool> {
        let context = self.context().await?;
        let mut suggestions = self.options.advisor.analyze(&context).suggestions;
        suggestions.extend(experiments(&context, self.options.trial.goal));
        let mut helped = false;
        for suggestion in suggestions {
            if suggestion.vectors > self.options.vectors {
                continue;
            }
            let Some(patch) = &suggestion.patch else {
                continue;
            };
            let config = match patch.apply(&self.report.config) {
                Ok(config) => config,
                Err(error) => {
                    let why = error.to_string();
                    // The next pass would say it again.
                    if self.tried.insert(format!("{}: {why}", suggestion.id)) {
                        self.note(TuneStep {
                            suggestion,
                            kept: false,
                            failed: Some(why),
                        });
                    }
                    continue;
                }
            };
            if !self.tried.insert(written(&config)) {
                continue;
            }
            if self.until.is_some_and(|until| Instant::now() > until) {
                self.report.complete = false;
                return Ok(false);
            }
            helped |= self.attempt(suggestion, config).await?;
        }
        Ok(helped)
    }

    /// Tries a change, and keeps it if it is better.
    async fn attempt(
        &mut self,
        mut suggestion: Suggestion,
        config: EmbeddingConfig,
    ) -> Result<bool> {
        let tried = async {
            let trial = &self.options.trial;
            let candidate = load(&self.source, config.clone(), trial).await?;
            let mut report = trial.run(&self.best, &candidate, &self.texts).await?;
            if report.verdict == Verdict::Better && self.has_kept() {
                // Each step may go as far as the tolerance, all of them together no farther.
                let few = &self.texts[..self.texts.len().min(COMPARED)];
                if !trial.are_same(&self.start, &candidate, few).await? {
                    report.verdict = Verdict::OtherVectors;
                }
            }
            Ok::<_, isovec::Error>((candidate, report))
        };
        let mut step = match tried.await {
            Ok((candidate, report)) => {
                let kept = report.verdict == Verdict::Better;
                if kept {
                    self.best = candidate;
                    self.report.config = config;
                }
                suggestion.verified = Some(report);
                TuneStep {
                    suggestion,
                    kept,
                    failed: None,
                }
            }
            Err(error) if error.is_cancelled() => return Err(error),
            Err(error) => TuneStep {
                suggestion,
                kept: false,
                failed: Some(error.to_string()),
            },
        };
        // Nobody looks at the turns of so many steps.
        if let Some(report) = &mut step.suggestion.verified {
            report.forget_turns();
        }
        let kept = step.kept;
        self.note(step);
        Ok(kept)
    }

    fn has_kept(&self) -> bool {
        self.report.steps.iter().any(|step| step.kept)
    }

    fn note(&mut self, step: TuneStep) {
        if let Some(hears) = &self.options.on_step {
            hears.step(&step);
        }
        self.report.steps.push(step);
    }

    /// What the best configuration does with the texts.
    async fn context(&self) -> Result<AnalysisContext> {
        let session = self.best.profile(ProfileOptions::default())?;
        let mut options = EmbedOptions::default();
        options.cancel.clone_from(&self.options.trial.cancel);
        let few = &self.texts[..self.texts.len().min(FEW)];
        let vectors = self.best.embed_with(few, options).await?;
        let profile = ProfileSummary::from(&session.finish());
        let lengths = vectors.token_counts().iter().map(|&tokens| tokens as usize);
        Ok(AnalysisContext::from(&self.best)
            .with_profile(profile)
            .with_workload(Workload::new(few.iter().zip(lengths)))
            .with_hardware(self.hardware.clone()))
    }
}

/// Texts whose vectors are compared with those of the beginning.
const COMPARED: usize = 64;
/// Texts that are embedded to look at how they are.
const FEW: usize = 512;

fn written(config: &EmbeddingConfig) -> String {
    serde_json::to_string(config).unwrap_or_default()
}
