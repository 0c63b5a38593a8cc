//! Predicts the memory of a run from two measured runs.
//!
//! The intermediate tensors of an encoder grow with the positions of a batch and, where attention
//! keeps its scores, with the square of a row's length: `rows × (linear × length + square ×
//! length²)`. Two small runs when the model is loaded give the two numbers.

use isovec_engine::cancel::Cancel;
use isovec_engine::description::ModelDescription;
use isovec_engine::engine::Batch;
use isovec_engine::error::Result;

/// Row length of the first run; both are short enough to cost some ten milliseconds.
const SHORT: usize = 16;
/// Of the second, the longest that the model has positions for.
const LONG: [usize; 2] = [96, 48];

/// Measured peaks of eight rows of 16 to 256 tokens were 1.04 to 1.30 times the bare fit, most for
/// rows of about 32: the arena rounds, and fits freed pieces together differently for every shape.
const MARGIN: f64 = 1.35;

/// A model's need of memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prediction {
    linear: f64,
    square: f64,
}

impl Prediction {
    /// From the bytes that one row of each length took.
    fn fit(short: (usize, u64), long: (usize, u64)) -> Self {
        let (n, m) = (short.0 as f64, long.0 as f64);
        let (a, b) = (short.1 as f64 / n, long.1 as f64 / m);
        // a = linear + square × n; b = linear + square × m. Neither can be negative in truth.
        let square = ((b - a) / (m - n)).max(0.0);
        let linear = (b - square * m).max(0.0);
        Self { linear, square }
    }

    /// The bytes that a run is foretold to take.
    pub(crate) fn bytes(&self, rows: usize, length: usize) -> u64 {
        let length = length as f64;
        let row = self.linear * length + self.square * length * length;
        (rows as f64 * row * MARGIN) as u64
    }
}

/// Makes the two runs. `run` runs a batch and says how many bytes were in use at its peak.
/// `None` for a model whose inputs are not rows of a length that varies, and where `run` cannot
/// count.
pub(crate) fn calibrate(
    description: &ModelDescription,
    cancel: &Cancel,
    mut run: impl FnMut(Batch) -> Result<Option<u64>>,
) -> Result<Option<Prediction>> {
    let mut measure = |length: usize| -> Result<Option<(usize, u64)>> {
        cancel.check()?;
        let Some(batch) = Batch::sample(description, 1, length)? else {
            return Ok(None);
        };
        // A model may refuse such a row; then nothing is foretold from it.
        Ok(run(batch).ok().flatten().map(|bytes| (length, bytes)))
    };
    let Some(short) = measure(SHORT)? else {
        return Ok(None);
    };
    for length in LONG {
        if let Some(long) = measure(length)? {
            return Ok(Some(Prediction::fit(short, long)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_give_both_numbers_back() {
        let truth = |n: usize| (3000 * n + 50 * n * n) as u64;
        let prediction = Prediction::fit((16, truth(16)), (96, truth(96)));
        assert!((prediction.linear - 3000.0).abs() < 1e-6, "{prediction:?}");
        assert!((prediction.square - 50.0).abs() < 1e-6, "{prediction:?}");
        let foretold = prediction.bytes(4, 256) as f64;
        assert!((foretold / (4.0 * truth(256) as f64) - MARGIN).abs() < 1e-6);
    }

    #[test]
    fn a_model_that_shrinks_with_length_is_not_foretold_to_need_nothing() {
        let prediction = Prediction::fit((16, 1_000_000), (96, 600_000));
        assert_eq!(prediction.square, 0.0);
        assert!(prediction.bytes(1, 96) >= 600_000);
    }
}
