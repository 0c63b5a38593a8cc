//! One thing that was measured, turn by turn.

use std::fmt;

use isovec_insight::advisor::Samples;
use serde::{Deserialize, Serialize};

use super::plan::Cell;
use super::turns::quantile;

/// Seconds of one thing's turns: smaller is better for all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    #[serde(flatten)]
    pub(super) key: Key,
    /// Texts that these seconds are for.
    pub(super) texts: usize,
    /// Calls of a turn, where a turn is many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) calls: Option<usize>,
    /// Tokens of each text, where all have as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<usize>,
    /// A value for each turn.
    pub(super) seconds: Samples,
}

/// Which figure it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) part: Part,
    pub(super) name: String,
    pub(super) of: Of,
}

/// The part of the benchmark that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// All texts at hand.
    Offline,
    /// Texts of about one length.
    Lengths,
    /// Many callers with a text each.
    Callers,
    /// Calls of so many texts of exactly that length.
    Curves,
}

/// What a turn's seconds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Of {
    /// What the texts took, one turn after another.
    Time,
    /// What half of the turn's calls took at most.
    P50,
    /// What 99 in 100 of its calls took at most; with few calls, the slowest.
    P99,
}

impl Figure {
    /// Nothing where a value is none that can be compared, such as that of a turn without a call.
    pub(super) fn new(
        part: Part,
        name: impl Into<String>,
        of: Of,
        texts: usize,
        seconds: &[f64],
    ) -> Option<Self> {
        Some(Self {
            key: Key {
                part,
                name: name.into(),
                of,
            },
            texts,
            calls: None,
            tokens: None,
            seconds: Samples::new(seconds).ok()?,
        })
    }

    /// The point of the curves that it is of.
    pub(super) fn cell(&self) -> Option<Cell> {
        Some(Cell {
            texts: self.texts,
            tokens: self.tokens?,
            calls: self.calls?,
        })
    }

    pub(super) fn texts_per_second(&self) -> f64 {
        self.texts as f64 / self.seconds.median()
    }

    /// The middle turn, in the figure's unit.
    pub(super) fn shown(&self) -> String {
        match self.key.of {
            Of::Time => format!("{:.1} texts/s", self.texts_per_second()),
            Of::P50 | Of::P99 => format!("{:.2} ms", self.seconds.median() * 1e3),
        }
    }

    /// The fastest and the slowest turn, in the same unit.
    pub(super) fn range(&self) -> String {
        let ends = [0.0, 1.0].map(|end| quantile(self.seconds.values(), end));
        match self.key.of {
            Of::Time => {
                let [most, least] = ends.map(|seconds| self.texts as f64 / seconds);
                format!("{least:.1} to {most:.1}")
            }
            Of::P50 | Of::P99 => format!("{:.2} to {:.2}", ends[0] * 1e3, ends[1] * 1e3),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.of {
            Of::Time => Ok(()),
            Of::P50 => f.write_str(", p50"),
            Of::P99 => f.write_str(", p99"),
        }
    }
}

impl Part {
    pub(super) const ALL: [Self; 4] = [Self::Offline, Self::Lengths, Self::Callers, Self::Curves];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Offline => "All texts",
            Self::Lengths => "Texts by their tokens",
            Self::Callers => "Many callers",
            Self::Curves => "Latency against throughput",
        }
    }
}
