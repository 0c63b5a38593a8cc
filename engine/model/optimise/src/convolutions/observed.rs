//! What was seen of values, in the same memory for any number of pictures.

use std::collections::BTreeMap;

use super::layers::Convolutions;
use crate::calibrate::{Calibrator, Histogram, Range};
use crate::error::{OptimizeError, Result};

/// Ranges and powers of the values before and behind layers.
///
/// The sums are in f64 and in the order of the values, so the same pictures in the same order give the same bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranges {
    seen: BTreeMap<String, Seen>,
    runs: u64,
}

/// What was seen of a value.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    histogram: Histogram,
    /// The sum of the squares of each channel.
    squares: Vec<f64>,
}

impl Ranges {
    /// Of nothing.
    pub fn new(layers: &Convolutions) -> Self {
        let values = layers.values.iter().map(|(name, &channels)| {
            let seen = Seen {
                histogram: Histogram::new(),
                squares: vec![0.0; channels],
            };
            (name.clone(), seen)
        });
        Self {
            seen: values.collect(),
            runs: 0,
        }
    }

    /// Adds what a run of the probe on one picture gave; `value` is asked for each value by its name, the inputs of the model among
    /// them.
    ///
    /// # Errors
    /// [`OptimizeError::NotFinite`]; [`OptimizeError::Size`] for a value that is not there, or has no whole number of channels.
    pub fn add<'v>(&mut self, value: impl Fn(&str) -> Option<&'v [f32]>) -> Result<()> {
        for (name, seen) in &mut self.seen {
            let values = value(name).unwrap_or_default();
            let channels = seen.squares.len();
            if values.is_empty() || !values.len().is_multiple_of(channels) {
                return Err(OptimizeError::Size {
                    what: "the number of values that the probe gave",
                    asked: format!("{} for {name}", values.len()),
                    allowed: format!("a multiple of {channels}"),
                });
            }
            seen.histogram
                .add(values)
                .map_err(|_| OptimizeError::NotFinite {
                    what: format!("{name}, while calibrating,"),
                })?;
            // One picture: its channels are planes.
            let planes = values.chunks_exact(values.len() / channels);
            for (sum, plane) in seen.squares.iter_mut().zip(planes) {
                let squares = plane.iter().map(|&value| f64::from(value).powi(2));
                *sum += squares.sum::<f64>();
            }
        }
        self.runs += 1;
        Ok(())
    }

    /// Pictures so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// The smallest and the largest value.
    pub(super) fn range(&self, name: &str) -> Result<Range> {
        match self.seen.get(name) {
            Some(seen) => seen.histogram.range(Calibrator::MinMax),
            None => Histogram::new().range(Calibrator::MinMax),
        }
    }

    /// The mean square of each channel.
    pub(super) fn powers(&self, name: &str) -> Vec<f64> {
        let Some(seen) = self.seen.get(name) else {
            return Vec::new();
        };
        let each = seen.histogram.count() as f64 / seen.squares.len() as f64;
        let squares = seen.squares.iter();
        squares.map(|sum| sum / each.max(1.0)).collect()
    }

    /// The mean square of all channels.
    pub(super) fn power(&self, name: &str) -> f64 {
        let powers = self.powers(name);
        powers.iter().sum::<f64>() / powers.len().max(1) as f64
    }
}
