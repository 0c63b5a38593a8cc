//! Measurements of one thing at two times: how much slower or faster it has become.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rank_sum::shift;
use isovec::{Error, Result};

/// More measurements tell nothing more, and every pair of them is looked at.
const MOST: usize = 4096;

/// Measurements of one thing, such as the seconds of turns: numbers above 0.
///
/// [`Trial`](super::Trial) lets two embedders take turns, whose times are paired. If that is impossible, because one
/// of them was measured yesterday, each has its own samples:
///
/// ```
/// use isovec_insight::advisor::Samples;
///
/// let before = Samples::new([1.00, 1.02, 0.99, 1.01, 1.03, 1.00])?;
/// let after = Samples::new([1.20, 1.22, 1.19, 1.25, 1.21, 1.20])?;
/// let ratio = after.ratio_to(&before, 0.95)?;
/// assert!(ratio.low > Some(1.15) && ratio.high < Some(1.25));
/// # Ok::<(), isovec::Error>(())
/// ```
///
/// The interval is of the scatter inside both runs. What changed between them as a whole (a clock that slowed down,
/// another program) no statistics can tell from the thing itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Samples(Vec<f64>);

/// How many times as large one thing's values are as another's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ratio {
    /// The Hodges–Lehmann estimate, taken of logarithms: the median of the ratios of all pairs.
    pub estimate: f64,
    /// The lower end of the interval that the ratio is in with `confidence`. `None`: too few values for it.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// How sure it is.
    pub confidence: f64,
}

impl Samples {
    /// Of these values, in the order in which they were taken.
    ///
    /// # Errors
    /// [`Error::Config`] for none, more than 4096, and values that are not above 0 and finite.
    pub fn new(values: impl Into<Vec<f64>>) -> Result<Self> {
        let values = values.into();
        if values.is_empty() || values.len() > MOST {
            return Err(Error::Config(vec![format!(
                "{} samples: there have to be 1 to {MOST}",
                values.len()
            )]));
        }
        match values
            .iter()
            .find(|value| !(value.is_finite() && **value > 0.0))
        {
            Some(value) => Err(Error::Config(vec![format!(
                "a sample is {value}: samples have to be finite and above 0"
            )])),
            None => Ok(Self(values)),
        }
    }

    /// The values, in the order in which they were taken.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The middle value, between the two middle ones where their number is even.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len() - 1;
        f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)])
    }

    /// How many times as large these values are as the baseline's: above 1 is slower where they are seconds. Exact for
    /// samples whose sizes have a product of at most 2500, by the normal distribution past it.
    ///
    /// # Errors
    /// [`Error::Config`] for a confidence that is not between 0 and 1.
    pub fn ratio_to(&self, baseline: &Self, confidence: f64) -> Result<Ratio> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::Config(vec![format!(
                "the confidence is {confidence}: it has to be between 0 and 1"
            )]));
        }
        let ln = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        let found = shift(&ln(&baseline.0), &ln(&self.0), confidence);
        let end = |end: f64| end.is_finite().then(|| end.exp());
        Ok(Ratio {
            estimate: found.estimate.exp(),
            low: end(found.low),
            high: end(found.high),
            confidence,
        })
    }
}

impl TryFrom<Vec<f64>> for Samples {
    type Error = Error;

    fn try_from(values: Vec<f64>) -> Result<Self> {
        Self::new(values)
    }
}

impl From<Samples> for Vec<f64> {
    fn from(samples: Samples) -> Self {
        samples.0
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}x", self.estimate)?;
        match (self.low, self.high) {
            (Some(low), Some(high)) => write!(f, " ({low:.3} to {high:.3})"),
            _ => f.write_str(" (too few values for an interval)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::advisor::noise::Noise;

    /// With a long tail to the slow side, as times have.
    fn samples(noise: &mut Noise, count: usize, factor: f64) -> Samples {
        let value = |_| factor * (1.0 - 0.1 * (1.0 - noise.next()).ln());
        Samples::new((0..count).map(value).collect::<Vec<_>>()).expect("above 0")
    }

    #[test]
    fn equal_runs_are_told_apart_no_more_often_than_promised() {
        let mut noise = Noise(77);
        for confidence in [0.95, 0.99] {
            let alarms = (0..2000).filter(|_| {
                let (before, after) = (samples(&mut noise, 8, 1.0), samples(&mut noise, 8, 1.0));
                let found = after.ratio_to(&before, confidence).unwrap();
                found.low > Some(1.0) || found.high < Some(1.0)
            });
            let rate = alarms.count() as f64 / 2000.0;
            // Three standard deviations of 2000 tries above what is promised; and the tries do find something.
            let promised = 1.0 - confidence;
            let most = promised + 3.0 * (promised * confidence / 2000.0).sqrt();
            assert!(rate > 0.0 && rate <= most, "{rate} for {confidence}");
        }
    }

    #[test]
    fn a_tenth_is_found_and_one_slow_turn_is_not() {
        let mut noise = Noise(5);
        let before = samples(&mut noise, 40, 1.0);
        let found = samples(&mut noise, 40, 1.2)
            .ratio_to(&before, 0.95)
            .unwrap();
        assert!(found.low > Some(1.1), "{found}");
        assert!(found.high < Some(1.3), "{found}");
        let mut values = before.values().to_vec();
        values[7] *= 50.0;
        let found = Samples::new(values).unwrap().ratio_to(&before, 0.95);
        let found = found.unwrap();
        assert!(found.low < Some(1.0) && found.high > Some(1.0), "{found}");
        assert!((found.estimate - 1.0).abs() < 0.05, "{found}");
    }

    #[test]
    fn few_values_have_no_interval_and_wrong_ones_no_samples() {
        let three = Samples::new([1.0, 2.0, 3.0]).unwrap();
        let found = three.ratio_to(&three, 0.95).unwrap();
        assert_eq!((found.estimate, found.low, found.high), (1.0, None, None));
        assert_eq!(three.median(), 2.0);
        assert_eq!(Samples::new([4.0, 1.0]).unwrap().median(), 2.5);
        for wrong in [
            vec![],
            vec![0.0],
            vec![-1.0],
            vec![f64::NAN],
            vec![1.0, f64::INFINITY],
        ] {
            assert_eq!(Samples::new(wrong).unwrap_err().kind(), "Config");
        }
        assert!(Samples::new(vec![1.0; 4097]).is_err());
        for confidence in [0.0, 1.0, f64::NAN, 95.0] {
            assert!(three.ratio_to(&three, confidence).is_err());
        }
        assert!(serde_json::from_str::<Samples>("[1.0, 0.0]").is_err());
        assert_eq!(serde_json::to_string(&three).unwrap(), "[1.0,2.0,3.0]");
    }
}
