//! Floats in 16 bits, rounded to nearest: IEEE 754 binary16, and bfloat16, the upper half of a binary32.

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::bytes as le;

/// How a float has 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    F16,
    Bf16,
}

impl Half {
    /// The bytes of values in 16 bits. Past the range of the form they become infinite.
    pub(super) fn narrowed(self, values: &[f32]) -> bytes::Bytes {
        match self {
            Self::F16 => {
                let mut halves = vec![f16::ZERO; values.len()];
                halves.convert_from_f32_slice(values);
                le::of_f16s(&halves)
            }
            Self::Bf16 => {
                let halves = values.iter().map(|&value| bf16::from_f32(value));
                halves
                    .flat_map(bf16::to_le_bytes)
                    .collect::<Vec<u8>>()
                    .into()
            }
        }
    }

    /// The values of such bytes, all of them exact.
    pub(super) fn widened(self, data: &[u8]) -> Vec<f32> {
        match self {
            Self::F16 => {
                let mut values = vec![0f32; data.len() / 2];
                le::f16s(data).convert_to_f32_slice(&mut values);
                values
            }
            Self::Bf16 => {
                let (halves, _) = data.as_chunks::<2>();
                let values = halves.iter().map(|&half| bf16::from_le_bytes(half));
                values.map(bf16::to_f32).collect()
            }
        }
    }

    /// What 16 bits take from every value.
    pub(super) fn changes(self, values: &[f32]) -> impl Iterator<Item = f32> {
        values.chunks(1024).flat_map(move |values| {
            let stored = self.widened(&self.narrowed(values));
            let pairs = values.iter().zip(stored);
            pairs.map(|(value, stored)| value - stored)
        })
    }
}
