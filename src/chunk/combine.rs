//! One vector for the chunks of a text.

use crate::error::{Error, Result};

/// How the vectors of a text's chunks become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Combine {
    /// Their mean, each weighted by its tokens without special ones and the prompt's: a last chunk
    /// of ten words should not count for as much as the full ones before it.
    #[default]
    Mean,
    /// The largest value of each component.
    Max,
}

/// Below this length a mean of unit vectors is what rounding left of them: components have 24 bits.
const NO_LENGTH: f64 = 1e-6;

/// The vectors of one text so far.
#[derive(Debug)]
pub(super) struct Combined {
    how: Combine,
    values: Vec<f64>,
    weight: f64,
    /// The only vector, as it is.
    single: Option<Vec<f32>>,
    pub(super) tokens: u32,
    pub(super) truncated: bool,
}

impl Combined {
    pub(super) fn new(how: Combine) -> Self {
        Self {
            how,
            values: Vec::new(),
            weight: 0.0,
            single: None,
            tokens: 0,
            truncated: false,
        }
    }

    /// Takes the vector of the next chunk, `fixed` of whose tokens are special or the prompt's.
    pub(super) fn add(&mut self, vector: &[f32], tokens: u32, fixed: u32, truncated: bool) {
        let own = tokens.saturating_sub(fixed).max(1);
        let (first, weight) = (self.values.is_empty(), f64::from(own));
        self.single = first.then(|| vector.to_vec());
        self.tokens = self.tokens.saturating_add(tokens);
        self.truncated |= truncated;
        self.weight += weight;
        let vector = vector.iter().map(|&value| f64::from(value));
        match self.how {
            Combine::Mean if first => self.values.extend(vector.map(|value| value * weight)),
            Combine::Max if first => self.values.extend(vector),
            Combine::Mean => {
                let values = self.values.iter_mut().zip(vector);
                values.for_each(|(sum, value)| *sum += value * weight);
            }
            Combine::Max => {
                let values = self.values.iter_mut().zip(vector);
                values.for_each(|(most, value)| *most = most.max(value));
            }
        }
    }

    /// Adds the vector of text `text` to `rows`, of unit length where that is wanted.
    ///
    /// # Errors
    /// [`Error::NoDirection`] for one that cannot be scaled to unit length.
    pub(super) fn finish(self, text: usize, normalized: bool, rows: &mut Vec<f32>) -> Result<()> {
        if let Some(single) = self.single {
            rows.extend(single);
            return Ok(());
        }
        let mut scale = match self.how {
            Combine::Mean => 1.0 / self.weight,
            Combine::Max => 1.0,
        };
        if normalized {
            let squares: f64 = self.values.iter().map(|value| value * value).sum();
            let length = squares.sqrt();
            if length * scale < NO_LENGTH {
                return Err(Error::NoDirection { text });
            }
            scale = 1.0 / length;
        }
        rows.extend(self.values.iter().map(|value| (value * scale) as f32));
        Ok(())
    }
}
