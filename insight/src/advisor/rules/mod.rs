//! isovec's own rules, one file for each subject. A rule fires on counts or measurements and quotes them. Without
//! them it is silent.

mod batching;
mod browser;
mod graph;
mod memory;
mod precision;
mod providers;
mod threads;

use super::Rule;
use super::context::{AnalysisContext, Part};
use super::suggestion::Suggestion;

/// A rule as a function.
pub(super) struct BuiltIn {
    pub(super) id: &'static str,
    needs: &'static [Part],
    check: fn(&AnalysisContext) -> Option<Suggestion>,
}

impl Rule for BuiltIn {
    fn id(&self) -> &str {
        self.id
    }

    fn needs(&self) -> &[Part] {
        self.needs
    }

    fn check(&self, context: &AnalysisContext) -> Vec<Suggestion> {
        (self.check)(context).into_iter().collect()
    }
}

const fn rule(
    id: &'static str,
    needs: &'static [Part],
    check: fn(&AnalysisContext) -> Option<Suggestion>,
) -> BuiltIn {
    BuiltIn { id, needs, check }
}

/// All of them.
pub(super) static ALL: &[BuiltIn] = &[
    providers::FALLBACK,
    providers::SOFTWARE_GPU,
    providers::SMALL_BATCHES_ON_GPU,
    providers::IO_BINDING,
    threads::DETERMINISTIC,
    threads::IDLE,
    threads::OVERSUBSCRIBED,
    batching::ONE_TEXT_BATCHES,
    batching::ONE_TEXT_CALLS,
    batching::OVER_BATCHING,
    batching::PADDING,
    batching::REPEATED_TEXTS,
    memory::PRESSURE,
    memory::FRAGMENTATION,
    memory::POOL_MISSES,
    memory::NOT_MAPPED,
    precision::SMALLER_WEIGHTS,
    precision::PRODUCTS_IN_INT8,
    precision::MIXED_ON_GPU,
    graph::ATTENTION,
    graph::UNFUSED,
    graph::FLASH,
    graph::RUNTIME_PROFILE,
    browser::NOT_ISOLATED,
];

/// A part as percent.
fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Bytes in megabytes.
fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests;
