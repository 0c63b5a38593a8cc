//! Decides what to measure and for how long: from the options, or from the baseline of a comparison.

use serde::{Deserialize, Serialize};

use super::kept::{Benchmark, KeptError};
use super::limits::{MOST_CALLERS, MOST_ROUNDS, MOST_SECONDS};
use crate::args::Bench;
use crate::error::{CliError, Result};

const ROUNDS: usize = 3;
/// Enough that 300 figures have an interval at once: 1 in 6435 is the least that eight and eight values can prove.
const KEPT_ROUNDS: usize = 8;
/// Turns with which all figures together can have intervals: 1 in 462 covers 21 figures, 1 in 6435 those of curves too.
const FEWEST_KEPT: usize = 6;
const FEWEST_WITH_CURVES: usize = 8;
const SECONDS: f64 = 2.0;
const CALLERS: usize = 64;

/// The options of a benchmark, which have to be the same for two to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Options {
    pub(super) rounds: usize,
    pub(super) seconds: f64,
    pub(super) callers: usize,
    pub(super) curves: bool,
}

/// The options, and what was decided by measuring where it is repeated.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) options: Options,
    /// Texts of a turn; by the time that they take where none are named.
    pub(super) texts_a_turn: Option<usize>,
    /// Calls of the curves; as many as there is time for where none are named.
    pub(super) cells: Option<Vec<Cell>>,
}

/// A point of the curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) texts: usize,
    pub(super) tokens: usize,
    /// Calls of a turn.
    pub(super) calls: usize,
}

impl Plan {
    /// # Errors
    /// [`CliError::Usage`] for too few rounds to keep, [`CliError::Kept`] for options that are not the baseline's.
    pub(super) fn new(args: &Bench, baseline: Option<&Benchmark>) -> Result<Self> {
        let kept = args.kept.save.is_some();
        let fewest = if args.curves {
            FEWEST_WITH_CURVES
        } else {
            FEWEST_KEPT
        };
        if kept && baseline.is_none() && args.rounds.is_some_and(|rounds| rounds < fewest) {
            return Err(CliError::Usage(format!(
                "--rounds has to be at least {fewest} with --save{}: fewer turns prove nothing when they are compared",
                if args.curves { " and --curves" } else { "" }
            )));
        }
        let Some(baseline) = baseline else {
            return Ok(Self {
                options: Options {
                    rounds: args
                        .rounds
                        .unwrap_or(if kept { KEPT_ROUNDS } else { ROUNDS }),
                    seconds: args.seconds.unwrap_or(SECONDS),
                    callers: args.callers.unwrap_or(CALLERS),
                    curves: args.curves,
                },
                texts_a_turn: None,
                cells: None,
            });
        };
        let then = baseline.options;
        let asked = Options {
            rounds: args.rounds.unwrap_or(then.rounds),
            seconds: args.seconds.unwrap_or(then.seconds),
            callers: args.callers.unwrap_or(then.callers),
            // Without the option it measures what the baseline has.
            curves: args.curves || then.curves,
        };
        let differences = then.differences(&asked);
        if !differences.is_empty() {
            return Err(CliError::Kept {
                name: args.kept.compare.clone().unwrap_or_default(),
                error: KeptError::Other(differences),
            });
        }
        Ok(Self {
            options: then,
            texts_a_turn: Some(baseline.texts.a_turn),
            cells: Some(baseline.cells()),
        })
    }
}

impl Options {
    /// What the command line would have refused.
    pub(super) fn fault(&self) -> Option<String> {
        let Self {
            rounds,
            seconds,
            callers,
            curves: _,
        } = *self;
        if !(1..=MOST_ROUNDS).contains(&rounds) {
            return Some(format!("--rounds is {rounds}, and not 1 to {MOST_ROUNDS}"));
        }
        if !(seconds > 0.0 && seconds <= MOST_SECONDS) {
            return Some(format!(
                "--seconds is {seconds:?}, and not more than 0 and at most {MOST_SECONDS}"
            ));
        }
        let in_range = (1..=MOST_CALLERS).contains(&callers);
        (!in_range).then(|| format!("--callers is {callers}, and not 1 to {MOST_CALLERS}"))
    }

    /// What is not the same, as `now` has it and as it was.
    pub(super) fn differences(&self, now: &Self) -> Vec<String> {
        [
            ("--rounds", self.rounds.to_string(), now.rounds.to_string()),
            (
                "--seconds",
                self.seconds.to_string(),
                now.seconds.to_string(),
            ),
            (
                "--callers",
                self.callers.to_string(),
                now.callers.to_string(),
            ),
            ("--curves", self.curves.to_string(), now.curves.to_string()),
        ]
        .into_iter()
        .filter(|(_, then, now)| then != now)
        .map(|(what, then, now)| format!("{what} {now} now, {then} then"))
        .collect()
    }
}
