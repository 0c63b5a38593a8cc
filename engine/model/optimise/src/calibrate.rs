//! Ranges of activations, from a histogram that takes any number of samples in the same memory.

use crate::error::{OptimizeError, Result};

/// Bins on each side of zero.
const SIDE: usize = 2048;

/// The smallest exponent of a histogram's limit: below it, f32 has no normal numbers.
const LEAST_EXPONENT: i32 = -126;

/// Levels of magnitude that 8 bits distinguish.
const LEVELS: usize = 128;

/// Counts of values in 4,096 bins of equal width around zero.
///
/// The limit is a power of two. A value past it doubles the limit until it fits, and pairs of bins become one. Bins of the
/// wider histogram are exactly pairs of the narrower one's, so the result depends on the values alone, and neither on their
/// order nor on how they were handed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Bins cover `-2^exponent..2^exponent`.
    exponent: i32,
    bins: Vec<u64>,
    min: f32,
    max: f32,
    count: u64,
}

/// The range that is quantised; what is past it is clipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// The smallest value.
    pub min: f32,
    /// The largest value.
    pub max: f32,
}

/// How a range is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Calibrator {
    /// The smallest and the largest value: nothing is clipped.
    MinMax,
    /// So many percent of the values lie inside, and as many below as above: 99.99 for example.
    Percentile(f64),
    /// The range, symmetric around zero, whose quantised distribution of magnitudes loses least information: the smallest
    /// Kullback-Leibler divergence, by S. Migacz, "8-bit Inference with TensorRT" (GTC 2017).
    Entropy,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Of no values.
    pub fn new() -> Self {
        Self {
            exponent: LEAST_EXPONENT,
            bins: vec![0; 2 * SIDE],
            min: f32::INFINITY,
            max: f32::NEG_INFINITY,
            count: 0,
        }
    }

    /// Adds values. On an error none of them is added.
    ///
    /// # Errors
    /// [`OptimizeError::NotFinite`].
    pub fn add(&mut self, values: &[f32]) -> Result<()> {
        if !values.iter().all(|value| value.is_finite()) {
            return Err(OptimizeError::NotFinite {
                what: "a batch of activations".into(),
            });
        }
        for &value in values {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            let value = f64::from(value);
            while value.abs() >= self.limit() {
                self.double();
            }
            // Exact: the width is a power of two.
            let bin = (value / self.width()).floor() as i64 + SIDE as i64;
            self.bins[bin as usize] += 1;
        }
        self.count += values.len() as u64;
        Ok(())
    }

    /// Values so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The range that a calibrator chooses.
    ///
    /// # Errors
    /// [`OptimizeError::Texts`] where there was no value; [`OptimizeError::Size`] for a percentage that is not in 0 to 100.
    pub fn range(&self, calibrator: Calibrator) -> Result<Range> {
        if self.count == 0 {
            return Err(OptimizeError::Texts(
                "no value was seen while calibrating; give texts to calibrate with".into(),
            ));
        }
        let (min, max) = (self.min, self.max);
        let within = |low: f64, high: f64| Range {
            min: (low as f32).max(min),
            max: (high as f32).min(max),
        };
        Ok(match calibrator {
            Calibrator::MinMax => Range { min, max },
            Calibrator::Percentile(percent) => {
                if !(percent > 0.0 && percent <= 100.0) {
                    return Err(OptimizeError::Size {
                        what: "the percentile",
                        asked: percent.to_string(),
                        allowed: "above 0, and at most 100".into(),
                    });
                }
                let out = self.count as f64 * (100.0 - percent) / 200.0;
                let low = self.edge(self.bins.iter(), out);
                let high = self.edge(self.bins.iter().rev(), out);
                within(-self.limit() + low, self.limit() - high)
            }
            Calibrator::Entropy => {
                let most = self.threshold();
                within(-most, most)
            }
        })
    }

    fn limit(&self) -> f64 {
        2f64.powi(self.exponent)
    }

    fn width(&self) -> f64 {
        self.limit() / SIDE as f64
    }

    fn double(&mut self) {
        let mut wider = vec![0; 2 * SIDE];
        for (bin, &count) in self.bins.iter().enumerate() {
            wider[(bin + SIDE) / 2] += count;
        }
        self.bins = wider;
        self.exponent += 1;
    }

    /// How far from the end the bin begins that is the first to hold more than so many values.
    fn edge<'b>(&self, bins: impl Iterator<Item = &'b u64>, out: f64) -> f64 {
        let mut passed = 0;
        let kept = bins.take_while(|&&count| {
            passed += count;
            passed as f64 <= out
        });
        kept.count() as f64 * self.width()
    }

    /// The magnitude past which clipping loses least information.
    fn threshold(&self) -> f64 {
        let below = self.bins[..SIDE].iter().rev();
        let sides = below.zip(&self.bins[SIDE..]);
        let magnitudes: Vec<f64> = sides.map(|(a, b)| (a + b) as f64).collect();
        let used = magnitudes
            .iter()
            .rposition(|&count| count > 0.0)
            .map_or(1, |at| at + 1);
        let mut best = (f64::INFINITY, used);
        for bins in LEVELS.min(used)..=used {
            let loss = divergence(&magnitudes[..used], bins);
            // Of equal ones the widest: it clips least.
            if loss <= best.0 {
                best = (loss, bins);
            }
        }
        best.1 as f64 * self.width()
    }
}

/// The Kullback-Leibler divergence of magnitudes clipped to so many bins from the same in 128 levels: `Σ p · ln(p / q)`.
fn divergence(magnitudes: &[f64], bins: usize) -> f64 {
    let total: f64 = magnitudes.iter().sum();
    let clipped: f64 = magnitudes[bins..].iter().sum();
    let levels = LEVELS.min(bins);
    let mut loss = 0.0;
    for level in 0..levels {
        let (first, behind) = (level * bins / levels, (level + 1) * bins / levels);
        let inside = &magnitudes[first..behind];
        // A level stands for its bins that hold something, each alike.
        let held = inside.iter().filter(|&&count| count > 0.0).count();
        let alike = inside.iter().sum::<f64>() / held.max(1) as f64;
        for (bin, &count) in (first..).zip(inside) {
            let p = if bin + 1 == bins {
                count + clipped
            } else {
                count
            };
            if p > 0.0 {
                // The last bin has what was clipped even where nothing else was in it.
                let q = if alike > 0.0 { alike } else { 1.0 };
                loss += p / total * (p / q).ln();
            }
        }
    }
    // What was clipped is missing from the levels, which are scaled to the same sum.
    let kept = total - clipped;
    loss + if kept > 0.0 { (kept / total).ln() } else { 0.0 }
}

impl Range {
    /// Scale and zero point of `QuantizeLinear` to unsigned 8 bits: `scale = (max - min) / 255` over the range widened to
    /// hold 0, `zero_point = round(-min / scale)`, so that 0 is exact
    /// (<https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html>). The scale of a range of zeros is 1.
    pub fn to_u8(self) -> (f32, u8) {
        let (min, max) = (self.min.min(0.0), self.max.max(0.0));
        let scale = (max - min) / 255.0;
        if scale < f32::MIN_POSITIVE {
            return (1.0, 0);
        }
        (
            scale,
            (-min / scale).round_ties_even().clamp(0.0, 255.0) as u8,
        )
    }
}

#[cfg(test)]
mod tests {
    use isovec_test_models::rng::Rng;

    use super::*;

    fn normal(count: usize) -> Vec<f32> {
        let mut rng = Rng::new(4);
        (0..count).map(|_| rng.normal() as f32).collect()
    }

    fn of(values: &[f32]) -> Histogram {
        let mut histogram = Histogram::new();
        histogram.add(values).unwrap();
        histogram
    }

    #[test]
    fn order_and_portions_do_not_matter() {
        let values = normal(5000);
        let whole = of(&values);
        let mut parts = Histogram::new();
        for part in values.rchunks(7) {
            parts.add(part).unwrap();
        }
        assert_eq!(whole, parts);
        assert_eq!(
            (whole.count(), whole.bins.iter().sum::<u64>()),
            (5000, 5000)
        );
        assert_eq!(whole.bins.len(), 2 * SIDE);
    }

    #[test]
    fn each_calibrator_finds_its_range() {
        let mut values = normal(100_000);
        values.push(64.0);
        let histogram = of(&values);
        let least = values.iter().copied().fold(f32::INFINITY, f32::min);
        let all = histogram.range(Calibrator::MinMax).unwrap();
        assert_eq!((all.min, all.max), (least, 64.0));
        // 2.5 percent of a normal distribution lie past 1.96 on each side; a bin is 1/16 wide here.
        let most = histogram.range(Calibrator::Percentile(95.0)).unwrap();
        assert!(
            (most.max - 1.96).abs() < 0.1 && (most.min + 1.96).abs() < 0.1,
            "{most:?}"
        );
        assert_eq!(histogram.range(Calibrator::Percentile(100.0)).unwrap(), all);
        // One far value is clipped, and nearly everything else is kept.
        let least_lost = histogram.range(Calibrator::Entropy).unwrap();
        assert!((2.5..16.0).contains(&least_lost.max), "{least_lost:?}");
        // Without outliers nothing much is.
        let even: Vec<f32> = (0..10_000)
            .map(|at| at as f32 / 10_000.0 * 2.0 - 1.0)
            .collect();
        let kept = of(&even).range(Calibrator::Entropy).unwrap();
        assert!(kept.max > 0.98 && kept.min < -0.98, "{kept:?}");
    }

    #[test]
    fn what_cannot_be_calibrated_is_refused() {
        let mut histogram = Histogram::new();
        assert!(histogram.range(Calibrator::MinMax).is_err());
        assert!(histogram.add(&[1.0, f32::NAN]).is_err());
        assert_eq!(histogram, Histogram::new());
        histogram.add(&[0.0; 3]).unwrap();
        for calibrator in [
            Calibrator::MinMax,
            Calibrator::Percentile(99.0),
            Calibrator::Entropy,
        ] {
            assert_eq!(
                histogram.range(calibrator).unwrap(),
                Range { min: 0.0, max: 0.0 }
            );
        }
        for percent in [0.0, -1.0, 100.1, f64::NAN] {
            assert!(
                histogram.range(Calibrator::Percentile(percent)).is_err(),
                "{percent}"
            );
        }
        histogram.add(&[f32::MAX, f32::MIN]).unwrap();
        assert_eq!(histogram.range(Calibrator::MinMax).unwrap().max, f32::MAX);
    }

    #[test]
    fn eight_bits_hold_zero_exactly() {
        let (scale, zero) = Range {
            min: -1.0,
            max: 3.0,
        }
        .to_u8();
        assert_eq!((scale, zero), (4.0 / 255.0, 64));
        assert_eq!(Range { min: 2.0, max: 5.1 }.to_u8(), (5.1 / 255.0, 0));
        assert_eq!(Range { min: 0.0, max: 0.0 }.to_u8(), (1.0, 0));
    }
}
