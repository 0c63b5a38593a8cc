//! Matrices in 4 bits, in blocks of 32 values with a scale each.

use half::f16;
use isovec_engine::error::{EngineError, Result};

/// Values of a block.
pub const BLOCK: usize = 32;

/// Half of a block: as many bytes hold it.
const HALF: usize = BLOCK / 2;

/// Shares of the largest magnitude that are tried as the end of a block's range.
const SHARES: [f32; 9] = [0.80, 0.825, 0.85, 0.875, 0.90, 0.925, 0.95, 0.975, 1.0];

/// A matrix in 4 bits.
///
/// A block is 32 values that follow each other along `axis`. Value `i` of a block stands for `scale * (n[i] - 8)`, with `n` from 0 to
/// 15. A byte has `n[i]` in its low and `n[i + 16]` in its high half, `i` from 0 to 15.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockTensor {
    /// The extents `[rows, columns]`.
    pub shape: [usize; 2],
    /// The axis along which the blocks lie, 0 or 1; its extent is a multiple of 32.
    pub axis: usize,
    /// The bytes: `[rows / 32, 16, columns]` for axis 0, `[rows, columns / 32, 16]` for axis 1, row-major.
    pub bytes: Vec<u8>,
    /// The scales: `[rows / 32, columns]` or `[rows, columns / 32]`.
    pub scales: Vec<f16>,
}

impl BlockTensor {
    /// The extents of the bytes.
    pub fn bytes_shape(&self) -> [usize; 3] {
        self.layout().bytes_shape()
    }

    /// The extents of the scales, with 1 along a block, so that they broadcast over its values.
    pub fn scales_shape(&self) -> [usize; 3] {
        self.layout().scales_shape()
    }

    fn layout(&self) -> Layout {
        Layout {
            shape: self.shape,
            axis: self.axis,
        }
    }
}

/// Where the blocks of a matrix lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) shape: [usize; 2],
    pub(super) axis: usize,
}

impl Layout {
    pub(super) fn new(shape: &[usize], axis: usize) -> Option<Self> {
        let &[rows, columns] = shape else { return None };
        let along = *shape.get(axis)?;
        let fits = along % BLOCK == 0 && rows > 0 && columns > 0;
        fits.then_some(Self {
            shape: [rows, columns],
            axis,
        })
    }

    pub(super) fn blocks(self) -> usize {
        self.shape[0] * self.shape[1] / BLOCK
    }

    pub(super) fn bytes_shape(self) -> [usize; 3] {
        self.of_blocks(HALF)
    }

    pub(super) fn scales_shape(self) -> [usize; 3] {
        self.of_blocks(1)
    }

    /// The extents of so many elements for each block, in the place of its values.
    fn of_blocks(self, each: usize) -> [usize; 3] {
        let [rows, columns] = self.shape;
        match self.axis {
            0 => [rows / BLOCK, each, columns],
            _ => [rows, columns / BLOCK, each],
        }
    }

    /// The place of value `i` of a block in the matrix.
    fn value(self, block: usize, i: usize) -> usize {
        let columns = self.shape[1];
        match self.axis {
            0 => (block / columns * BLOCK + i) * columns + block % columns,
            _ => block * BLOCK + i,
        }
    }

    /// The place of byte `i` of a block.
    fn byte(self, block: usize, i: usize) -> usize {
        let columns = self.shape[1];
        match self.axis {
            0 => (block / columns * HALF + i) * columns + block % columns,
            _ => block * HALF + i,
        }
    }
}

/// Stores a matrix `[rows, columns]`, row-major, in blocks of 32 along an axis.
///
/// The range of a block ends at its value of the largest magnitude, which is -8, or at the share of it, from 0.8 on, that leaves the
/// least sum of squared errors; values past the end become the end. A scale is rounded to f16 first. A block of zeros stays zeros.
///
/// # Errors
/// [`EngineError::InvalidInput`] for values that are not as many as the extents ask for, an extent along the axis that is no multiple
/// of 32, values that are not finite, and blocks whose scale f16 does not hold.
pub fn quantize_blocks(values: &[f32], shape: &[usize], axis: usize) -> Result<BlockTensor> {
    let layout = layout(shape, axis)?;
    if values.len() != layout.blocks() * BLOCK {
        return Err(wrong(format!(
            "{} values are there, and {shape:?} takes {}",
            values.len(),
            layout.blocks() * BLOCK
        )));
    }
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(wrong(format!("value {place} is {}", values[place])));
    }
    let mut tensor = BlockTensor {
        shape: layout.shape,
        axis,
        bytes: vec![0; values.len() / 2],
        scales: Vec::with_capacity(layout.blocks()),
    };
    for block in 0..layout.blocks() {
        let own: [f32; BLOCK] = std::array::from_fn(|i| values[layout.value(block, i)]);
        let scale = scale(&own);
        if !scale.is_finite() {
            return Err(wrong(format!(
                "block {block} has values past those that a scale in 16 bits reaches"
            )));
        }
        let n = own.map(|value| nearest(value, scale.to_f32()));
        for i in 0..HALF {
            tensor.bytes[layout.byte(block, i)] = n[i] | n[i + HALF] << 4;
        }
        tensor.scales.push(scale);
    }
    Ok(tensor)
}

/// What a matrix in 4 bits stands for, row-major.
///
/// # Errors
/// [`EngineError::InvalidInput`] for parts that do not fit each other.
pub fn dequantize_blocks(tensor: &BlockTensor) -> Result<Vec<f32>> {
    let layout = layout(&tensor.shape, tensor.axis)?;
    if tensor.bytes.len() != layout.blocks() * HALF || tensor.scales.len() != layout.blocks() {
        return Err(wrong(format!(
            "{} bytes and {} scales are there, and {:?} takes {} and {}",
            tensor.bytes.len(),
            tensor.scales.len(),
            tensor.shape,
            layout.blocks() * HALF,
            layout.blocks()
        )));
    }
    Ok(expanded(&tensor.bytes, &tensor.scales, layout))
}

/// The values of blocks; there have to be as many bytes and scales as the layout takes.
pub(super) fn expanded(bytes: &[u8], scales: &[f16], layout: Layout) -> Vec<f32> {
    let mut values = vec![0f32; layout.blocks() * BLOCK];
    for (block, scale) in scales.iter().enumerate() {
        let scale = scale.to_f32();
        for i in 0..HALF {
            let byte = bytes[layout.byte(block, i)];
            let of = |n: u8| scale * (f32::from(n) - 8.0);
            values[layout.value(block, i)] = of(byte & 15);
            values[layout.value(block, i + HALF)] = of(byte >> 4);
        }
    }
    values
}

fn layout(shape: &[usize], axis: usize) -> Result<Layout> {
    Layout::new(shape, axis).ok_or_else(|| {
        wrong(format!(
            "{shape:?} is no matrix with a multiple of {BLOCK} values along axis {axis}"
        ))
    })
}

/// The number from 0 to 15 that stands for a value.
fn nearest(value: f32, scale: f32) -> u8 {
    match scale == 0.0 {
        true => 8,
        false => (value / scale + 8.0).round_ties_even().clamp(0.0, 15.0) as u8,
    }
}

/// The scale of a block with the least sum of squared errors.
fn scale(values: &[f32; BLOCK]) -> f16 {
    let larger = |most: f32, value: &f32| {
        if value.abs() > most.abs() {
            *value
        } else {
            most
        }
    };
    let largest = values.iter().fold(0.0, larger);
    let mut best = (f64::INFINITY, f16::ZERO);
    for share in SHARES {
        let scale = f16::from_f32(largest * share / -8.0);
        let errors = values.iter().map(|&value| {
            let found = scale.to_f32() * (f32::from(nearest(value, scale.to_f32())) - 8.0);
            f64::from(value - found).powi(2)
        });
        let error = errors.sum::<f64>();
        // What is no number is not less.
        if error < best.0 || share == SHARES[0] {
            best = (error, scale);
        }
    }
    best.1
}

fn wrong(detail: String) -> EngineError {
    EngineError::InvalidInput {
        name: "tensor".into(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(count: usize) -> Vec<f32> {
        (0..count)
            .map(|i| (i as f32 * 0.7).sin() * (1.0 + i as f32 / 100.0))
            .collect()
    }

    #[test]
    fn a_block_is_laid_out_as_stated() {
        // 0, -1, …, -8 and up again: every value is one of the 16, with the scale 1.
        let mut values = vec![0f32; 2 * BLOCK];
        values[..16].copy_from_slice(&std::array::from_fn::<f32, 16, _>(|i| i as f32 - 8.0));
        let tensor = quantize_blocks(&values, &[1, 64], 1).unwrap();
        assert_eq!(tensor.scales, [f16::ONE, f16::ZERO]);
        // The low halves are 0 to 15, and the high ones stand for zero.
        let wanted: Vec<u8> = (0..16).map(|n| n | 8 << 4).collect();
        assert_eq!(tensor.bytes[..16], wanted);
        assert_eq!(tensor.bytes[16..], [0x88; 16]);
        assert_eq!(dequantize_blocks(&tensor).unwrap(), values);
        // The same down a column.
        let tensor = quantize_blocks(&values, &[64, 1], 0).unwrap();
        assert_eq!(dequantize_blocks(&tensor).unwrap(), values);
        // Two columns, of which the second is all zeros: the bytes of a block lie two apart.
        let wide: Vec<f32> = values[..32]
            .iter()
            .flat_map(|&value| [value, 0.0])
            .collect();
        let tensor = quantize_blocks(&wide, &[32, 2], 0).unwrap();
        let first: Vec<u8> = tensor.bytes.iter().step_by(2).copied().collect();
        assert_eq!(first, wanted);
        assert_eq!(dequantize_blocks(&tensor).unwrap(), wide);
    }

    #[test]
    fn values_come_back_within_a_step_and_a_shorter_range_is_taken_where_it_is_better() {
        let values = wave(32 * 64);
        for axis in [0, 1] {
            let tensor = quantize_blocks(&values, &[32, 64], axis).unwrap();
            let back = dequantize_blocks(&tensor).unwrap();
            let squares = |values: &mut dyn Iterator<Item = f32>| {
                values.map(|value| f64::from(value).powi(2)).sum::<f64>()
            };
            let noise = squares(&mut values.iter().zip(&back).map(|(a, b)| a - b));
            let ratio = squares(&mut values.iter().copied()) / noise;
            // 4 bits have 20 to 30 dB.
            assert!((60.0..1000.0).contains(&ratio), "{axis}: {ratio}");
        }
        // One value is alone at the end of the range, and the rest fits a shorter one better.
        let mut block = wave(BLOCK);
        block[3] = 1.9;
        let exact = f16::from_f32(-1.9 / 8.0);
        let tensor = quantize_blocks(&block, &[1, 32], 1).unwrap();
        let error = |scale: f16| {
            let scale = scale.to_f32();
            let off = |&value: &f32| value - scale * (f32::from(nearest(value, scale)) - 8.0);
            block
                .iter()
                .map(off)
                .map(|off| f64::from(off).powi(2))
                .sum::<f64>()
        };
        assert!(error(tensor.scales[0]) <= error(exact));
        assert_ne!(tensor.scales[0], exact);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let refused = |values: &[f32], shape: &[usize], axis| {
            quantize_blocks(values, shape, axis)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&[0.0; 32], &[1, 33], 1).contains("multiple of 32"));
        assert!(refused(&[0.0; 32], &[32], 0).contains("no matrix"));
        assert!(refused(&[0.0; 32], &[1, 32], 2).contains("axis 2"));
        assert!(refused(&[], &[0, 32], 1).contains("no matrix"));
        assert!(refused(&[0.0; 31], &[1, 32], 1).contains("takes 32"));
        let mut values = [1.0; 32];
        values[5] = f32::NAN;
        assert!(refused(&values, &[1, 32], 1).contains("value 5 is NaN"));
        assert!(refused(&[1e7; 32], &[1, 32], 1).contains("block 0"));
        let mut tensor = quantize_blocks(&[1.0; 32], &[1, 32], 1).unwrap();
        tensor.bytes.pop();
        let error = dequantize_blocks(&tensor).unwrap_err().to_string();
        assert!(error.contains("15 bytes"), "{error}");
    }
}
