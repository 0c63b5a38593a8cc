//! Suggests changes that make a model faster or smaller, and tests them.
//!
//! ```no_run
//! use isovec_insight::advisor::{Advisor, AnalysisContext};
//! use isovec::{EmbeddingConfig, blocking::Embedder, models};
//!
//! let config = EmbeddingConfig::default();
//! let embedder = Embedder::builder(models::ALL_MINILM_L6_V2).config(config.clone()).load()?;
//! embedder.embed(["texts like those", "that are embedded here"])?;
//! let report = Advisor::new().analyze(&AnalysisContext::from(&embedder));
//! for suggestion in report.high_impact_suggestions() {
//!     println!("{}: {}", suggestion.title, suggestion.expected.improvement);
//!     let _better = suggestion.apply(&config)?;
//! }
//! # Ok::<(), isovec::Error>(())
//! ```
//!
//! A suggestion has only an expected improvement until it is tested. [`Trial`] runs two embedders in turns on the
//! same texts and measures by how much one is faster, with a confidence interval, and whether their vectors agree.
//! [`tune`] repeats this until nothing helps. [`Samples`] compares measurements from different times.

mod compared;
mod context;
mod experiments;
#[cfg(test)]
mod noise;
mod patch;
mod profile;
mod rank_sum;
mod remade;
#[cfg(not(target_arch = "wasm32"))]
mod remake;
mod report;
mod rules;
mod samples;
mod side;
mod signed_rank;
mod suggestion;
mod trial;
mod tune;
mod verify;
mod workload;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use compared::{compared, rows};
pub use context::{AnalysisContext, Part};
pub use patch::Patch;
pub use profile::{ProfileSummary, Times};
pub use remade::{Recipe, Scales, Sizes, VectorQuality};
pub use report::{FailedRule, NotJudged, OptimizationReport};
pub use samples::{Ratio, Samples};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use side::Side;
pub use suggestion::{
    Category, CodeExample, Difficulty, Evidence, Expected, Impact, Suggestion, VectorChange,
};
pub use trial::{Goal, Trial, TrialReport, Verdict};
pub use tune::{OnTuneStep, TuneOptions, TuneReport, TuneStep, tune};
pub use workload::Workload;

use isovec_engine::maybe_send::{MaybeSend, MaybeSync};
use isovec_engine::panics;

/// Examines one aspect, and suggests improvements.
pub trait Rule: MaybeSend + MaybeSync {
    /// Its name, which its suggestions have too.
    fn id(&self) -> &str;

    /// The parts of the context that it needs; without them it does not run.
    fn needs(&self) -> &[Part] {
        &[]
    }

    /// Its suggestions, if any. A panic is caught and reported; other rules still run.
    fn check(&self, context: &AnalysisContext) -> Vec<Suggestion>;
}

/// Looks at an embedder by rules: its own, and the caller's.
#[derive(Clone, Default)]
pub struct Advisor {
    custom: Vec<Arc<dyn Rule>>,
}

impl std::fmt::Debug for Advisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let custom: Vec<&str> = self.custom.iter().map(|rule| rule.id()).collect();
        f.debug_struct("Advisor").field("custom", &custom).finish()
    }
}

impl Advisor {
    /// With all rules of isovec's.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule of the caller's.
    #[must_use]
    pub fn with_rule(mut self, rule: impl Rule + 'static) -> Self {
        self.custom.push(Arc::new(rule));
        self
    }

    /// Names of all rules.
    pub fn rules(&self) -> Vec<String> {
        let custom = self.custom.iter().map(|rule| rule.id().to_owned());
        rules::ALL
            .iter()
            .map(|rule| rule.id.to_owned())
            .chain(custom)
            .collect()
    }

    /// Runs every rule whose parts are in the context.
    pub fn analyze(&self, context: &AnalysisContext) -> OptimizationReport {
        let mut report = OptimizationReport::default();
        for rule in rules::ALL {
            report.ask(rule, context);
        }
        for rule in &self.custom {
            report.ask(&**rule, context);
        }
        report.sort();
        report
    }
}

impl OptimizationReport {
    fn ask(&mut self, rule: &dyn Rule, context: &AnalysisContext) {
        let name = catch_unwind(AssertUnwindSafe(|| rule.id().to_owned()))
            .unwrap_or_else(|_| "(a rule whose name panics)".to_owned());
        let asked = catch_unwind(AssertUnwindSafe(|| {
            let needs = rule.needs().iter().copied();
            let lacks: Vec<Part> = needs.filter(|&part| !context.has(part)).collect();
            if lacks.is_empty() {
                Ok(rule.check(context))
            } else {
                Err(lacks)
            }
        }));
        match asked {
            Ok(Ok(suggestions)) => {
                self.judged += 1;
                self.suggestions.extend(suggestions);
            }
            Ok(Err(lacks)) => self.not_judged.push(NotJudged { rule: name, lacks }),
            Err(panic) => self.failed.push(FailedRule {
                rule: name,
                message: panics::message(&*panic),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
