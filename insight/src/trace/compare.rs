//! Two traces side by side.

use serde::Serialize;

use super::summary::{Summary, Times};

/// The changes from one trace to another.
#[derive(Debug, Serialize)]
pub struct Comparison<'s> {
    pub(super) before: &'s Summary,
    pub(super) after: &'s Summary,
    /// Stages of either, those of the second first.
    pub(super) stages: Vec<Change<'s>>,
}

/// A stage in both traces.
#[derive(Debug, Serialize)]
pub(super) struct Change<'s> {
    pub(super) name: &'s str,
    pub(super) before: Option<&'s Times>,
    pub(super) after: Option<&'s Times>,
    /// The second's mean over the first's.
    pub(super) mean_ratio: Option<f64>,
    pub(super) p99_ratio: Option<f64>,
}

impl<'s> Comparison<'s> {
    /// Sets two summaries side by side.
    pub fn new(before: &'s Summary, after: &'s Summary) -> Self {
        let in_both = after.stages.iter().map(|times| times.name.as_str());
        let gone = before.stages.iter().map(|times| times.name.as_str());
        let gone = gone.filter(|name| find(after, name).is_none());
        let stages = in_both.chain(gone);
        let stages = stages.map(|name| {
            let (before, after) = (find(before, name), find(after, name));
            let ratio = |of: fn(&Times) -> f64| {
                let (before, after) = (before.map(of)?, after.map(of)?);
                (before > 0.0).then(|| after / before)
            };
            Change {
                name,
                before,
                after,
                mean_ratio: ratio(|times| times.mean),
                p99_ratio: ratio(|times| times.p99),
            }
        });
        Self {
            before,
            after,
            stages: stages.collect(),
        }
    }
}

fn find<'s>(summary: &'s Summary, name: &str) -> Option<&'s Times> {
    summary.stages.iter().find(|times| times.name == name)
}
