//! The delimiters at which a text is split, and what happens to them: the `SplitDelimiterBehavior` of `tokenizers`.

use std::cell::Cell;

use serde_json::Value;

use crate::error::Fault;
use crate::regex::Regex;
use crate::split::pieces::{Cuts, Match, narrow};
use crate::split::settings::Settings;

/// A pattern of a file: a string that stands for itself, or a regular expression.
#[derive(Debug)]
pub(crate) enum Pattern {
    Text(String),
    Regex(Regex),
}

/// The most that all patterns of a file may take together, in bytes: a pattern of twenty bytes may
/// take half a million, and published ones take some thousand.
const MOST_BYTES: usize = 16 << 20;

/// What all patterns of a file take together.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Cell<usize>);

impl Patterns {
    /// The pattern of a component.
    pub(crate) fn read(&self, settings: Settings<'_>) -> Result<Pattern, Fault> {
        let pattern = Pattern::read(settings.get("pattern"));
        let pattern = pattern.map_err(|fault| settings.blame(fault))?;
        if let Pattern::Regex(regex) = &pattern {
            self.0.set(self.0.get().saturating_add(regex.bytes()));
        }
        match self.0.get() <= MOST_BYTES {
            true => Ok(pattern),
            false => Err(Fault::Excess(format!(
                "its patterns take more than {MOST_BYTES} bytes together"
            ))),
        }
    }
}

impl Pattern {
    /// Reads `{"String": ...}` or `{"Regex": ...}`.
    fn read(value: Option<&Value>) -> Result<Self, Fault> {
        let member = |name: &str| value?.get(name)?.as_str();
        match (member("String"), member("Regex")) {
            // Nothing stands between any two characters, which the engine knows how to find.
            (Some(""), _) => Regex::new("").map(Self::Regex),
            (Some(text), _) => Ok(Self::Text(text.to_owned())),
            (None, Some(regex)) => Regex::new(regex).map(Self::Regex),
            (None, None) => Err(Fault::Invalid(
                "a pattern that is neither a String nor a Regex".to_owned(),
            )),
        }
    }

    /// Fills `matches` with every match, and what lies between. Nothing has no matches, not even
    /// of a pattern that matches nothing. Returns the steps that were taken, which the text's budget counts.
    pub(crate) fn find(&self, text: &str, matches: &mut Vec<Match>) -> Result<u64, String> {
        let mut between = Between::new(matches);
        if text.is_empty() {
            return Ok(0);
        }
        let mut steps = 0;
        match self {
            Self::Text(pattern) => {
                for (start, found) in text.match_indices(pattern.as_str()) {
                    between.found(start..start + found.len());
                }
            }
            Self::Regex(regex) => {
                let taken = regex.each_match(text, |range| between.found(range));
                steps = taken.map_err(|_| "a regular expression takes too long".to_owned())?;
            }
        }
        between.end(text);
        Ok(steps)
    }
}

/// Fills `matches` with every character that is wanted, and what lies between.
pub(crate) fn find_characters(text: &str, wanted: impl Fn(char) -> bool, matches: &mut Vec<Match>) {
    let mut between = Between::new(matches);
    for (start, c) in text.char_indices() {
        if wanted(c) {
            between.found(start..start + c.len_utf8());
        }
    }
    between.end(text);
}

/// Notes matches with what lies between them.
struct Between<'a> {
    matches: &'a mut Vec<Match>,
    end: usize,
}

impl<'a> Between<'a> {
    fn new(matches: &'a mut Vec<Match>) -> Self {
        matches.clear();
        Self { matches, end: 0 }
    }

    fn found(&mut self, range: std::ops::Range<usize>) {
        if self.end != range.start {
            self.matches.push((narrow(self.end..range.start), false));
        }
        self.end = range.end;
        self.matches.push((narrow(range), true));
    }

    fn end(self, text: &str) {
        if self.end != text.len() {
            self.matches.push((narrow(self.end..text.len()), false));
        }
    }
}

/// What becomes of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

impl Behavior {
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        Ok(match value.as_str() {
            Some("Removed") => Self::Removed,
            Some("Isolated") => Self::Isolated,
            Some("MergedWithPrevious") => Self::MergedWithPrevious,
            Some("MergedWithNext") => Self::MergedWithNext,
            Some("Contiguous") => Self::Contiguous,
            _ => {
                return Err(Fault::Invalid(format!(
                    "a behavior that is not known: {value}"
                )));
            }
        })
    }

    /// Cuts a piece at its matches.
    pub(crate) fn cut(self, cuts: &mut Cuts) {
        let mut matches = std::mem::take(&mut cuts.matches);
        match self {
            Self::Removed => {
                let between = matches.iter().filter(|(_, is_match)| !is_match);
                between.for_each(|(range, _)| cuts.keep(range.clone()));
            }
            Self::Isolated => {
                for (range, _) in &matches {
                    cuts.keep(range.clone());
                }
            }
            Self::Contiguous => join(&matches, |before, now| before == now, cuts),
            Self::MergedWithPrevious => join(&matches, |before, now| now && !before, cuts),
            // A match goes with what is no match and follows it.
            Self::MergedWithNext => {
                let mut rest = matches.iter().peekable();
                while let Some((range, is_match)) = rest.next() {
                    let next = rest.next_if(|(_, next)| *is_match && !next);
                    cuts.keep(range.start..next.map_or(range.end, |(next, _)| next.end));
                }
            }
        }
        matches.clear();
        cuts.matches = matches;
    }
}

/// Keeps the ranges, each together with the one before it where `joins` says so of the two.
fn join(matches: &[Match], joins: impl Fn(bool, bool) -> bool, cuts: &mut Cuts) {
    let mut open: Option<std::ops::Range<u32>> = None;
    let mut before = false;
    for (range, is_match) in matches {
        match &mut open {
            Some(last) if joins(before, *is_match) => last.end = range.end,
            _ => {
                if let Some(whole) = open.replace(range.clone()) {
                    cuts.keep(whole);
                }
            }
        }
        before = *is_match;
    }
    if let Some(whole) = open {
        cuts.keep(whole);
    }
}
