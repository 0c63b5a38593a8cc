//! The small numbers of a model, such as biases, in one buffer.

use std::collections::HashMap;

/// Numbers side by side; the same ones twice are kept once.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    values: Vec<f32>,
    known: HashMap<Vec<u32>, usize>,
}

impl Constants {
    /// Where these numbers begin: at a multiple of four.
    pub(crate) fn add(&mut self, values: &[f32]) -> usize {
        let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
        *self.known.entry(bits).or_insert_with(|| {
            let at = self.values.len();
            self.values.extend_from_slice(values);
            self.values
                .resize(self.values.len().next_multiple_of(4), 0.0);
            at
        })
    }

    /// All of them: never none, because a buffer has to be bound.
    pub(crate) fn finish(mut self) -> Vec<f32> {
        if self.values.is_empty() {
            self.values.resize(4, 0.0);
        }
        self.values
    }
}

/// The numbers of all kernels, each with its own to read from their beginning.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    pub(crate) values: Vec<f32>,
    known: HashMap<Vec<u32>, Region>,
}

/// Where a kernel's numbers are, in floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) first: usize,
    pub(crate) len: usize,
}

impl Regions {
    /// Floats between the places at which a binding may begin, on every device.
    const ALIGNMENT: usize = 256 / size_of::<f32>();

    /// The place of a kernel's numbers; the same ones twice are kept once.
    pub(crate) fn add(&mut self, constants: Constants) -> Region {
        let values = constants.finish();
        let bits = values.iter().map(|value| value.to_bits()).collect();
        *self.known.entry(bits).or_insert_with(|| {
            let (first, len) = (self.values.len(), values.len());
            self.values.extend(values);
            let whole = self.values.len().next_multiple_of(Self::ALIGNMENT);
            self.values.resize(whole, 0.0);
            Region { first, len }
        })
    }
}
