//! What was seen of activations, in the same memory for any number of texts.

use super::products::Products;
use crate::error::{OptimizeError, Result};

/// Ranges and powers of the inputs of products, and powers of the products.
///
/// The sums are in f64 and in the order of the rows, so the same rows in the same order give the same bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    pub(super) inputs: Vec<Channels>,
    /// For each input, the power of each of its products.
    pub(super) powers: Vec<Vec<Power>>,
}

/// The channels of an input: the places along its last axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Channels {
    pub(super) min: Vec<f32>,
    pub(super) max: Vec<f32>,
    pub(super) squares: Vec<f64>,
    pub(super) rows: u64,
}

/// The sum of the squares of a product's values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Power {
    pub(super) squares: f64,
    pub(super) rows: u64,
}

impl Observed {
    /// Of nothing.
    pub fn new(products: &Products) -> Self {
        let channels = products.inputs.iter().map(|input| Channels {
            min: vec![f32::INFINITY; input.width],
            max: vec![f32::NEG_INFINITY; input.width],
            squares: vec![0.0; input.width],
            rows: 0,
        });
        let powers = products.inputs.iter();
        Self {
            inputs: channels.collect(),
            powers: powers
                .map(|input| vec![Power::default(); input.matrices.len()])
                .collect(),
        }
    }

    /// Adds what a run of the probe gave; `output` is asked for each value by its name.
    ///
    /// # Errors
    /// [`OptimizeError::NotFinite`]; [`OptimizeError::Size`] for a value that is not there, or is no whole number of rows.
    pub fn add<'v>(
        &mut self,
        products: &Products,
        output: impl Fn(&str) -> Option<&'v [f32]>,
    ) -> Result<()> {
        let of = |name: &str, width: usize| -> Result<&'v [f32]> {
            let values = output(name).unwrap_or_default();
            if values.is_empty() || !values.len().is_multiple_of(width) {
                return Err(OptimizeError::Size {
                    what: "the number of values that the probe gave",
                    asked: format!("{} for {name}", values.len()),
                    allowed: format!("a multiple of {width}"),
                });
            }
            match values.iter().all(|value| value.is_finite()) {
                true => Ok(values),
                false => Err(OptimizeError::NotFinite {
                    what: format!("{name}, while calibrating,"),
                }),
            }
        };
        let seen = self.inputs.iter_mut().zip(&mut self.powers);
        for (input, (channels, powers)) in products.inputs.iter().zip(seen) {
            for row in of(&input.name, input.width)?.chunks_exact(input.width) {
                channels.rows += 1;
                for (at, &value) in row.iter().enumerate() {
                    channels.min[at] = channels.min[at].min(value);
                    channels.max[at] = channels.max[at].max(value);
                    channels.squares[at] += f64::from(value) * f64::from(value);
                }
            }
            for (matrix, power) in input.matrices.iter().zip(powers) {
                let values = of(&matrix.output, matrix.columns)?;
                let squares = values.iter().map(|&value| f64::from(value).powi(2));
                power.squares += squares.sum::<f64>();
                power.rows += (values.len() / matrix.columns) as u64;
            }
        }
        Ok(())
    }

    /// Rows so far: tokens, of texts.
    pub fn rows(&self) -> u64 {
        self.inputs.first().map_or(0, |channels| channels.rows)
    }
}

impl Channels {
    /// The largest magnitude of a channel.
    pub(super) fn largest(&self, channel: usize) -> f32 {
        self.max[channel].max(-self.min[channel])
    }

    /// The mean of a channel's squares.
    pub(super) fn power(&self, channel: usize) -> f64 {
        self.squares[channel] / self.rows.max(1) as f64
    }
}

impl Power {
    /// The power of a row.
    pub(super) fn of_row(self) -> f64 {
        self.squares / self.rows.max(1) as f64
    }
}
