//! A bound as words: `cosine>=0.995`, `recall@10>=0.98`, `size<=12MB`, `latency<=5ms`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::Figures;
use crate::error::OptimizeError;

/// What a bound is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Figure {
    /// The smallest cosine of a text's vectors before and after, at least the limit.
    Cosine,
    /// Of the ten texts nearest to each text, the share that stays, at least the limit.
    Recall,
    /// Bytes of all files, at most the limit.
    Size,
    /// Seconds of a text in a call of its own, at most the limit.
    Latency,
}

/// A figure and its limit. It is written, and serialised, as it is parsed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// The figure.
    pub figure: Figure,
    /// The limit: a share of 1, bytes or seconds.
    pub limit: f64,
}

/// Units of bytes, and how many bytes each is.
const BYTES: [(&str, f64); 8] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// Units of time, and how many seconds each is.
const SECONDS: [(&str, f64); 4] = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];

impl Figure {
    const ALL: [Self; 4] = [Self::Cosine, Self::Recall, Self::Size, Self::Latency];

    /// Its name in a bound.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Recall => "recall@10",
            Self::Size => "size",
            Self::Latency => "latency",
        }
    }

    /// Whether it says what the vectors are like; else it is a cost.
    pub fn is_quality(self) -> bool {
        matches!(self, Self::Cosine | Self::Recall)
    }

    /// How a value of it is compared with its limit.
    fn sign(self) -> &'static str {
        if self.is_quality() { ">=" } else { "<=" }
    }

    /// The value that counts: of a time the upper end of its interval. `None`: it was not measured.
    pub fn value(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Cosine => Some(figures.cosine),
            Self::Recall => figures.recall,
            Self::Size => Some(figures.bytes as f64),
            Self::Latency => Some(figures.latency.high),
        }
    }

    /// A value in a unit that people read.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Cosine | Self::Recall => format!("{value:.4}"),
            Self::Size => format!("{:.2} MB", value / 1e6),
            Self::Latency => format!("{:.3} ms", value * 1e3),
        }
    }
}

impl Bound {
    /// By which share of the limit a model misses it; `None`: it is kept. What was not measured misses it as a whole.
    pub fn missing(&self, figures: &Figures) -> Option<f64> {
        let Some(value) = self.figure.value(figures) else {
            return Some(1.0);
        };
        let kept = match self.figure.is_quality() {
            true => value >= self.limit,
            false => value <= self.limit,
        };
        // What is no number is not kept, and must not count as near.
        let share = (value - self.limit).abs() / self.limit;
        (!kept).then_some(if share.is_finite() {
            share
        } else {
            f64::INFINITY
        })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.figure.name(), self.figure.sign())?;
        match self.figure {
            Figure::Cosine | Figure::Recall => write!(f, "{}", self.limit),
            Figure::Size => match BYTES[..5].iter().rev().find(|unit| self.limit >= unit.1) {
                Some((unit, bytes)) => write!(f, "{}{unit}", self.limit / bytes),
                None => write!(f, "{}B", self.limit),
            },
            Figure::Latency => write!(f, "{}ms", self.limit * 1e3),
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Bound {
    type Err = OptimizeError;

    /// Parses a figure, `>=` or `<=`, and a limit with its unit.
    fn from_str(given: &str) -> Result<Self, OptimizeError> {
        let wrong = |reason: String| OptimizeError::Bound {
            given: given.to_owned(),
            reason,
        };
        let word = given.trim_start();
        let end = word.find(['<', '>', '=']).unwrap_or(word.len());
        let (name, rest) = word.split_at(end);
        let name = name.trim_end();
        let figure = Figure::ALL.into_iter().find(|figure| figure.name() == name);
        let figure = figure.ok_or_else(|| wrong(format!("there is no figure named {name:?}")))?;
        let limit = rest.strip_prefix(figure.sign()).ok_or_else(|| {
            wrong(format!(
                "{name} is followed by {} and a limit",
                figure.sign()
            ))
        })?;
        let limit = limit.trim();
        let number = |text: &str| {
            let number = text.trim_end().parse::<f64>().ok();
            let number = number.filter(|number| number.is_finite() && *number > 0.0);
            number.ok_or_else(|| wrong(format!("{:?} is no number above 0", text.trim_end())))
        };
        let units: &[(&str, f64)] = match figure {
            Figure::Size => &BYTES,
            Figure::Latency => &SECONDS,
            Figure::Cosine | Figure::Recall => {
                let limit = number(limit)?;
                return match limit <= 1.0 {
                    true => Ok(Self { figure, limit }),
                    false => Err(wrong(format!("{name} is at most 1"))),
                };
            }
        };
        let start = limit.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E');
        let (value, unit) = limit.split_at(start.unwrap_or(limit.len()));
        let factor = units.iter().find(|(name, _)| *name == unit);
        let (_, factor) = factor.ok_or_else(|| {
            let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
            wrong(format!(
                "its limit has one of the units {}",
                names.join(", ")
            ))
        })?;
        Ok(Self {
            figure,
            limit: number(value)? * factor,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::figures;
    use super::*;

    #[test]
    fn bounds_are_read_in_their_units_and_written_as_they_are_read() {
        for (text, figure, limit) in [
            ("cosine>=0.995", Figure::Cosine, 0.995),
            ("recall@10>=0.98", Figure::Recall, 0.98),
            ("size<=12MB", Figure::Size, 12e6),
            ("size<=500B", Figure::Size, 500.0),
            ("latency<=5ms", Figure::Latency, 0.005),
        ] {
            let bound: Bound = text.parse().unwrap();
            assert_eq!((bound.figure, bound.limit), (figure, limit), "{text}");
            assert_eq!(bound.to_string(), text);
            assert_eq!(serde_json::to_value(bound).unwrap(), text);
        }
        for (text, limit) in [
            ("size <= 1.5 MiB", 1_572_864.0),
            ("latency<=250us", 250e-6),
            (" latency <= 2e0 s ", 2.0),
        ] {
            let bound = text.parse::<Bound>().unwrap();
            assert!(
                (bound.limit / limit - 1.0).abs() < 1e-12,
                "{text}: {bound:?}"
            );
        }
    }

    #[test]
    fn what_is_no_bound_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "no figure named \"\""),
            ("speed>=2", "no figure named \"speed\""),
            ("cosine", ">= and a limit"),
            ("cosine>0.9", ">= and a limit"),
            ("cosine<=0.9", ">= and a limit"),
            ("size>=1MB", "<= and a limit"),
            ("cosine>=", "no number"),
            ("cosine>=1.5", "at most 1"),
            ("cosine>=NaN", "no number"),
            ("recall@10>=-0.1", "no number"),
            ("size<=12", "units B,"),
            ("size<=12ms", "units B,"),
            ("size<=infMB", "units B,"),
            ("size<=0MB", "no number"),
            ("latency<=5MB", "units us,"),
            ("latency<=ms", "no number"),
        ] {
            let error = text.parse::<Bound>().unwrap_err();
            assert_eq!(error.kind(), "Optimize");
            let error = error.to_string();
            assert!(
                error.contains(reason) && error.contains(text),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_time_counts_with_the_upper_end_of_its_interval_and_no_number_is_kept_by_none() {
        let bound = |text: &str| text.parse::<Bound>().unwrap();
        let model = figures(0.9, 10, 1.0);
        assert_eq!(bound("latency<=12ms").missing(&model), None);
        let missing = bound("latency<=10ms").missing(&model).unwrap();
        assert!((missing - 0.1).abs() < 1e-9, "{missing}");
        assert_eq!(bound("recall@10>=0.1").missing(&model), Some(1.0));
        let broken = figures(f64::NAN, 10, 1.0);
        assert_eq!(bound("cosine>=0.1").missing(&broken), Some(f64::INFINITY));
    }
}
