//! Gives the fuzzer access to the engine for patterns.

use std::ops::Range;

use crate::error::Fault;
use crate::regex::Regex;
pub use crate::regex::generated;

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is no pattern.
    Invalid(String),
    /// It may be one, and uses what is not known here.
    Unsupported(String),
}

/// A pattern of a tokenizer's file.
#[derive(Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// Why it was refused.
    pub fn new(pattern: &str) -> Result<Self, Refusal> {
        Regex::new(pattern).map(Self).map_err(|fault| match fault {
            Fault::Unsupported(words) => Refusal::Unsupported(words),
            other => Refusal::Invalid(format!("{other:?}")),
        })
    }

    /// The matches of a text, and how many steps they took; `None` where those were too many.
    pub fn matches(&self, text: &str) -> Option<(Vec<Range<usize>>, u64)> {
        let mut found = Vec::new();
        let steps = self.0.each_match(text, |range| found.push(range)).ok()?;
        Some((found, steps))
    }
}
