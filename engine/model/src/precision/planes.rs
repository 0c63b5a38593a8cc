//! Matrices in 2 to 7 bits, in blocks of 64 values with a scale each.

use std::ops::RangeInclusive;

use half::f16;
use isovec_engine::error::{EngineError, Result};

use super::round::whole_within;

/// Values of a block.
pub const BLOCK: usize = 64;

/// Bits that a value may take.
pub const BITS: RangeInclusive<u8> = 2..=7;

/// The smallest share of the largest magnitude that is tried as the end of a block's range, in `SHARE`s.
const FIRST_SHARE: usize = 20;

/// The step between shares that are tried: 0.5, 0.525, …, 1.
const SHARE: f32 = 0.025;

/// A matrix in few bits.
///
/// A block is 64 values that follow each other along `axis`. Value `i` of a block stands for `scale * (n[i] - zero)`, with `n` from 0
/// to `2^bits - 1` and `zero = 2^(bits - 1)`.
///
/// The bits of `n` are cut into *planes* of 4, 2 and 1 bits, those of 4 first where `bits` has them, and the first plane has the
/// lowest bits: 5 bits are a plane with bits 0 to 3 and one with bit 4. In a plane of `p` bits a block takes `8 p` bytes. Byte `m` has
/// the bits of value `f * 8 p + m` in its bits `p f` to `p f + p - 1`, `f` from 0 to `8 / p - 1`.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockTensor {
    /// The extents `[rows, columns]`.
    pub shape: [usize; 2],
    /// The axis along which the blocks lie, 0 or 1; its extent is a multiple of 64.
    pub axis: usize,
    /// Bits of a value, 2 to 7.
    pub bits: u8,
    /// The bytes of each plane: `[rows / 64, 1, 8 p, columns]` for axis 0, `[rows, columns / 64, 1, 8 p]` for axis 1, row-major.
    pub planes: Vec<Vec<u8>>,
    /// The scales: `[rows / 64, columns]` or `[rows, columns / 64]`.
    pub scales: Vec<f16>,
}

impl BlockTensor {
    /// Of the numbers `n`, row-major, and the scales of the blocks.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] for parts that do not fit each other, and numbers that take more bits.
    pub fn of_numbers(
        numbers: &[u8],
        scales: Vec<f16>,
        shape: &[usize],
        axis: usize,
        bits: u8,
    ) -> Result<Self> {
        let layout = layout(shape, axis, bits)?;
        let wanted = (layout.blocks() * BLOCK, layout.blocks());
        if (numbers.len(), scales.len()) != wanted {
            return Err(wrong(format!(
                "{} numbers and {} scales are there, and {shape:?} takes {} and {}",
                numbers.len(),
                scales.len(),
                wanted.0,
                wanted.1
            )));
        }
        if let Some(place) = numbers.iter().position(|&n| n >> bits != 0) {
            return Err(wrong(format!(
                "number {place} is {}, which {bits} bits do not hold",
                numbers[place]
            )));
        }
        let planes = planes(bits).map(|plane| layout.packed(numbers, plane));
        Ok(Self {
            shape: layout.shape,
            axis,
            bits,
            planes: planes.collect(),
            scales,
        })
    }

    /// The planes: how many bits of a value each has, and the lowest of them.
    pub fn planes(&self) -> impl Iterator<Item = Plane> + use<> {
        planes(self.bits)
    }

    /// The extents of a plane of so many bits.
    pub fn plane_shape(&self, plane: Plane) -> [usize; 4] {
        self.layout().plane_shape(plane)
    }

    /// The extents of the values, cut into blocks: `[rows / 64, 64, columns]` or `[rows, columns / 64, 64]`.
    pub fn blocks_shape(&self) -> [usize; 3] {
        self.layout().blocks_shape()
    }

    /// The extents of the scales, with 1 along a block, so that they broadcast over its values.
    pub fn scales_shape(&self) -> [usize; 3] {
        self.layout().scales_shape()
    }

    /// The number that stands for zero.
    pub fn zero(&self) -> f32 {
        self.layout().zero()
    }

    /// Bytes of the planes and scales.
    pub fn byte_len(&self) -> usize {
        let planes: usize = self.planes.iter().map(Vec::len).sum();
        planes + self.scales.len() * size_of::<f16>()
    }

    fn layout(&self) -> Layout {
        Layout {
            shape: self.shape,
            axis: self.axis,
            bits: self.bits,
        }
    }
}

/// Some bits of every value of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    /// Bits of a value: 4, 2 or 1.
    pub bits: u8,
    /// The lowest of these bits in the value.
    pub lowest: u8,
}

impl Plane {
    /// Bytes of a block.
    pub fn bytes(self) -> usize {
        BLOCK / 8 * usize::from(self.bits)
    }

    /// Values of a byte.
    pub fn values(self) -> usize {
        usize::from(8 / self.bits)
    }

    /// How far a byte goes to the left, for each of its values, so that the value has the highest bits.
    pub fn lefts(self) -> Vec<u8> {
        let fields = 1..=8 / self.bits;
        fields.map(|field| 8 - field * self.bits).collect()
    }
}

/// The planes of values of so many bits.
pub(super) fn planes(bits: u8) -> impl Iterator<Item = Plane> {
    let mut lowest = 0;
    let widths = [4, 2, 1].into_iter().filter(move |width| bits & width != 0);
    widths.map(move |bits| {
        let plane = Plane { bits, lowest };
        lowest += bits;
        plane
    })
}

/// Where the blocks of a matrix lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) shape: [usize; 2],
    pub(super) axis: usize,
    pub(super) bits: u8,
}

impl Layout {
    pub(super) fn new(shape: &[usize], axis: usize, bits: u8) -> Option<Self> {
        let &[rows, columns] = shape else { return None };
        let along = *shape.get(axis)?;
        let fits = along % BLOCK == 0 && rows > 0 && columns > 0 && BITS.contains(&bits);
        fits.then_some(Self {
            shape: [rows, columns],
            axis,
            bits,
        })
    }

    pub(super) fn blocks(self) -> usize {
        self.shape[0] * self.shape[1] / BLOCK
    }

    pub(super) fn plane_shape(self, plane: Plane) -> [usize; 4] {
        let ([rows, columns], each) = (self.shape, plane.bytes());
        match self.axis {
            0 => [rows / BLOCK, 1, each, columns],
            _ => [rows, columns / BLOCK, 1, each],
        }
    }

    pub(super) fn blocks_shape(self) -> [usize; 3] {
        self.shape_of_blocks(BLOCK)
    }

    pub(super) fn scales_shape(self) -> [usize; 3] {
        self.shape_of_blocks(1)
    }

    /// The extents of so many elements for each block, in the place of its values.
    fn shape_of_blocks(self, each: usize) -> [usize; 3] {
        let [rows, columns] = self.shape;
        match self.axis {
            0 => [rows / BLOCK, each, columns],
            _ => [rows, columns / BLOCK, each],
        }
    }

    /// The number that stands for zero.
    pub(super) fn zero(self) -> f32 {
        f32::from(1u8 << (self.bits - 1))
    }

    /// The place of value `i` of a block in the matrix.
    fn value(self, block: usize, i: usize) -> usize {
        self.of_blocks(block, i, BLOCK)
    }

    /// The place of element `i` of a block, where a block has so many elements along the axis.
    fn of_blocks(self, block: usize, i: usize, each: usize) -> usize {
        let columns = self.shape[1];
        match self.axis {
            0 => (block / columns * each + i) * columns + block % columns,
            _ => block * each + i,
        }
    }

    /// The block of a value of the matrix.
    fn block_of(self, row: usize, column: usize) -> usize {
        let columns = self.shape[1];
        match self.axis {
            0 => row / BLOCK * columns + column,
            _ => (row * columns + column) / BLOCK,
        }
    }

    /// The bytes of a plane.
    fn packed(self, numbers: &[u8], plane: Plane) -> Vec<u8> {
        let (each, mask) = (plane.bytes(), (1u8 << plane.bits) - 1);
        let mut bytes = vec![0u8; self.blocks() * each];
        for block in 0..self.blocks() {
            for m in 0..each {
                let fields = (0..plane.values()).map(|field| {
                    let n = numbers[self.value(block, field * each + m)];
                    (n >> plane.lowest & mask) << (field * usize::from(plane.bits))
                });
                bytes[self.of_blocks(block, m, each)] = fields.fold(0, |byte, field| byte | field);
            }
        }
        bytes
    }
}

/// Stores a matrix `[rows, columns]`, row-major, in blocks of 64 along an axis, with the scales of [`block_scales`]. A value becomes
/// the nearest one that its block has.
///
/// # Errors
/// Those of [`block_scales`].
pub fn quantize_blocks(
    values: &[f32],
    shape: &[usize],
    axis: usize,
    bits: u8,
) -> Result<BlockTensor> {
    let scales = block_scales(values, shape, axis, bits, None)?;
    let layout = layout(shape, axis, bits)?;
    let columns = layout.shape[1];
    let numbers = values.iter().enumerate().map(|(place, &value)| {
        let scale = scales[layout.block_of(place / columns, place % columns)];
        nearest(value, scale.to_f32(), bits)
    });
    BlockTensor::of_numbers(&numbers.collect::<Vec<u8>>(), scales, shape, axis, bits)
}

/// The scales of a matrix `[rows, columns]`, row-major, in blocks of 64 along an axis.
///
/// The range of a block ends at its value of the largest magnitude, which is the number 0, or at the share of it, from 0.5 on, that
/// leaves the least sum of squared errors; values past the end become the end. The errors at a place along the axis count as much
/// as `weights` says, one for each place, else all the same. A scale is rounded to f16 first. A block of zeros stays zeros.
///
/// # Errors
/// [`EngineError::InvalidInput`] for values or weights that are not as many as the extents ask for, an extent along the axis that is no
/// multiple of 64, bits that are not 2 to 7, values that are not finite, and blocks whose scale f16 does not hold.
pub fn block_scales(
    values: &[f32],
    shape: &[usize],
    axis: usize,
    bits: u8,
    weights: Option<&[f64]>,
) -> Result<Vec<f16>> {
    let layout = layout(shape, axis, bits)?;
    let along = layout.shape[axis];
    if values.len() != layout.blocks() * BLOCK {
        return Err(wrong(format!(
            "{} values are there, and {shape:?} takes {}",
            values.len(),
            layout.blocks() * BLOCK
        )));
    }
    if let Some(weights) = weights.filter(|weights| weights.len() != along) {
        return Err(wrong(format!(
            "{} weights are there, and {shape:?} takes {along} along axis {axis}",
            weights.len()
        )));
    }
    if let Some(place) = values.iter().position(|value| !value.is_finite()) {
        return Err(wrong(format!("value {place} is {}", values[place])));
    }
    let blocks = (0..layout.blocks()).map(|block| {
        let own: [f32; BLOCK] = std::array::from_fn(|i| values[layout.value(block, i)]);
        let first = match axis {
            0 => block / layout.shape[1] * BLOCK,
            _ => block * BLOCK % along,
        };
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[first + i] as f32);
        let scale = scale(&own, &std::array::from_fn(weight), layout);
        match scale.is_finite() {
            true => Ok(scale),
            false => Err(wrong(format!(
                "block {block} has values past those that a scale in 16 bits reaches"
            ))),
        }
    });
    blocks.collect()
}

/// What a matrix in few bits stands for, row-major.
///
/// # Errors
/// [`EngineError::InvalidInput`] for parts that do not fit each other.
pub fn dequantize_blocks(tensor: &BlockTensor) -> Result<Vec<f32>> {
    let layout = layout(&tensor.shape, tensor.axis, tensor.bits)?;
    let found: Vec<usize> = tensor.planes.iter().map(Vec::len).collect();
    let wanted: Vec<usize> = planes(tensor.bits)
        .map(|plane| plane.bytes() * layout.blocks())
        .collect();
    if found != wanted || tensor.scales.len() != layout.blocks() {
        return Err(wrong(format!(
            "{found:?} bytes of planes and {} scales are there, and {:?} in {} bits takes {wanted:?} and {}",
            tensor.scales.len(),
            tensor.shape,
            tensor.bits,
            layout.blocks()
        )));
    }
    let bytes: Vec<&[u8]> = tensor.planes.iter().map(Vec::as_slice).collect();
    Ok(expanded(&bytes, &tensor.scales, layout))
}

/// The values of blocks; there have to be as many planes, bytes and scales as the layout takes.
pub(super) fn expanded(bytes: &[&[u8]], scales: &[f16], layout: Layout) -> Vec<f32> {
    let mut values = vec![0f32; layout.blocks() * BLOCK];
    for (block, scale) in scales.iter().enumerate() {
        let mut numbers = [0u8; BLOCK];
        for (bytes, plane) in bytes.iter().zip(planes(layout.bits)) {
            let (each, mask) = (plane.bytes(), (1u8 << plane.bits) - 1);
            for m in 0..each {
                let byte = bytes[layout.of_blocks(block, m, each)];
                for field in 0..plane.values() {
                    let n = byte >> (field * usize::from(plane.bits)) & mask;
                    numbers[field * each + m] |= n << plane.lowest;
                }
            }
        }
        let scale = scale.to_f32();
        for (i, n) in numbers.into_iter().enumerate() {
            values[layout.value(block, i)] = scale * (f32::from(n) - layout.zero());
        }
    }
    values
}

fn layout(shape: &[usize], axis: usize, bits: u8) -> Result<Layout> {
    if !BITS.contains(&bits) {
        return Err(wrong(format!(
            "a value is to take {bits} bits, and may take {} to {}",
            BITS.start(),
            BITS.end()
        )));
    }
    Layout::new(shape, axis, bits).ok_or_else(|| {
        wrong(format!(
            "{shape:?} is no matrix with a multiple of {BLOCK} values along axis {axis}"
        ))
    })
}

/// The number of so many bits that stands for a value: `round(value / scale) + zero`, and 0 or `2^bits - 1` past the ends. A tie goes
/// to the even number.
pub fn nearest(value: f32, scale: f32, bits: u8) -> u8 {
    let zero = 1u8 << (bits - 1);
    match scale == 0.0 {
        true => zero,
        false => {
            let most = f32::from((1u16 << bits) - 1);
            whole_within(value / scale + f32::from(zero), 0.0, most) as u8
        }
    }
}

/// The scale of a block with the least weighted sum of squared errors.
fn scale(values: &[f32; BLOCK], weights: &[f32; BLOCK], layout: Layout) -> f16 {
    let larger = |most: f32, value: &f32| {
        if value.abs() > most.abs() {
            *value
        } else {
            most
        }
    };
    let largest = values.iter().fold(0.0, larger);
    let (zero, most) = (layout.zero(), 2.0 * layout.zero() - 1.0);
    let mut best = (f32::INFINITY, f16::ZERO);
    for share in FIRST_SHARE..=2 * FIRST_SHARE {
        let scale = f16::from_f32(share as f32 * SHARE * largest / -zero);
        let step = scale.to_f32();
        let by = if step == 0.0 { 0.0 } else { 1.0 / step };
        let mut errors = [0f32; 8];
        // In eight sums, which the compiler may compute at once.
        for (values, weights) in values.chunks_exact(8).zip(weights.chunks_exact(8)) {
            for (at, error) in errors.iter_mut().enumerate() {
                let n = whole_within(values[at] * by + zero, 0.0, most);
                let off = values[at] - step * (n - zero);
                *error += weights[at] * off * off;
            }
        }
        let error = errors.iter().sum::<f32>();
        // What is no number is not less. Of equal ones the widest range: it clips least.
        if error <= best.0 || share == FIRST_SHARE {
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
        // 5 bits: -16 to 15, every one of them, and 32 zeros, in two columns of which the second is all zeros.
        let own: Vec<f32> = (0..64)
            .map(|i| if i < 32 { i as f32 - 16.0 } else { 0.0 })
            .collect();
        let wide: Vec<f32> = own.iter().flat_map(|&value| [value, 0.0]).collect();
        let tensor = quantize_blocks(&wide, &[64, 2], 0, 5).unwrap();
        assert_eq!(tensor.scales, [f16::ONE, f16::ZERO]);
        let planes: Vec<Plane> = tensor.planes().collect();
        assert_eq!(
            planes,
            [Plane { bits: 4, lowest: 0 }, Plane { bits: 1, lowest: 4 }]
        );
        assert_eq!(tensor.plane_shape(planes[0]), [1, 1, 32, 2]);
        assert_eq!(tensor.plane_shape(planes[1]), [1, 1, 8, 2]);
        assert_eq!(
            (planes[0].lefts(), planes[1].lefts()[..2].to_vec()),
            (vec![4, 0], vec![7, 6])
        );
        // Numbers 0 to 31, then 16s: in the low four bits value m and value 32 + m of a byte.
        let first = |bytes: &[u8]| -> Vec<u8> { bytes.iter().step_by(2).copied().collect() };
        let low: Vec<u8> = (0..32).map(|m| m & 15).collect();
        assert_eq!(first(&tensor.planes[0]), low);
        // The highest bit: of values 0 to 15 none, of all others one; byte m has values m, 8 + m, 16 + m, …
        assert_eq!(first(&tensor.planes[1]), [0b1111_1100; 8]);
        assert_eq!(dequantize_blocks(&tensor).unwrap(), wide);
        let tensor = quantize_blocks(&own, &[1, 64], 1, 5).unwrap();
        assert_eq!(tensor.plane_shape(planes[1]), [1, 1, 1, 8]);
        assert_eq!(tensor.planes[1], [0b1111_1100; 8]);
        assert_eq!(dequantize_blocks(&tensor).unwrap(), own);
    }

    #[test]
    fn every_number_of_bits_keeps_its_numbers_along_both_axes() {
        for bits in BITS {
            let numbers: Vec<u8> = (0..128 * 64)
                .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 20) as u8 & ((1 << bits) - 1))
                .collect();
            for axis in [0, 1] {
                let scales = vec![f16::ONE; 128];
                let tensor =
                    BlockTensor::of_numbers(&numbers, scales, &[128, 64], axis, bits).unwrap();
                let bytes = usize::from(bits) * 1024 + 2 * 128;
                assert_eq!(tensor.byte_len(), bytes, "{bits} {axis}");
                let zero = f32::from(1u8 << (bits - 1));
                let wanted: Vec<f32> = numbers.iter().map(|&n| f32::from(n) - zero).collect();
                assert_eq!(dequantize_blocks(&tensor).unwrap(), wanted, "{bits} {axis}");
            }
        }
    }

    fn noise(values: &[f32], tensor: &BlockTensor) -> f64 {
        let back = dequantize_blocks(tensor).unwrap();
        let squares = values
            .iter()
            .zip(&back)
            .map(|(a, b)| f64::from(a - b).powi(2));
        squares.sum()
    }

    #[test]
    fn a_bit_more_is_a_quarter_of_the_noise_about() {
        let values = wave(64 * 64);
        let signal: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
        for axis in [0, 1] {
            let noise = [3, 4, 5, 6, 7].map(|bits| {
                noise(
                    &values,
                    &quantize_blocks(&values, &[64, 64], axis, bits).unwrap(),
                )
            });
            let ratio = signal / noise[1];
            // 4 bits have 20 to 30 dB.
            assert!((60.0..1000.0).contains(&ratio), "{axis}: {ratio}");
            for pair in noise.windows(2) {
                let quotient = pair[0] / pair[1];
                assert!((3.0..6.0).contains(&quotient), "{axis}: {noise:?}");
            }
        }
    }

    #[test]
    fn a_shorter_range_is_taken_where_it_is_better_and_weights_say_what_counts() {
        // One value is alone at the end of the range, and the rest fits a shorter one better.
        let mut block = wave(BLOCK);
        block[3] = 1.9;
        let exact = f16::from_f32(-1.9 / 8.0);
        let with = |scale: f16, weights: &[f64]| {
            let step = scale.to_f32();
            let off = |value: f32| value - step * (f32::from(nearest(value, step, 4)) - 8.0);
            let errors = block.iter().zip(weights);
            let errors = errors.map(|(&value, weight)| weight * f64::from(off(value)).powi(2));
            errors.sum::<f64>()
        };
        let even = vec![1.0; BLOCK];
        let found = block_scales(&block, &[1, BLOCK], 1, 4, None).unwrap()[0];
        assert_ne!(found, exact);
        assert!(with(found, &even) < with(exact, &even));
        // Where only the far value counts, none is better than the range that ends there.
        let mut last = vec![0.0; BLOCK];
        last[3] = 1.0;
        for (shape, axis) in [([1, BLOCK], 1), ([BLOCK, 1], 0)] {
            let found = block_scales(&block, &shape, axis, 4, Some(&last)).unwrap();
            assert_eq!(found, [exact]);
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let refused = |values: &[f32], shape: &[usize], axis, bits| {
            let made = quantize_blocks(values, shape, axis, bits);
            made.unwrap_err().to_string()
        };
        assert!(refused(&[0.0; 64], &[1, 65], 1, 4).contains("multiple of 64"));
        assert!(refused(&[0.0; 64], &[64], 0, 4).contains("no matrix"));
        assert!(refused(&[0.0; 64], &[1, 64], 2, 4).contains("axis 2"));
        assert!(refused(&[], &[0, 64], 1, 4).contains("no matrix"));
        assert!(refused(&[0.0; 63], &[1, 64], 1, 4).contains("takes 64"));
        for bits in [0, 1, 8] {
            assert!(refused(&[0.0; 64], &[1, 64], 1, bits).contains("2 to 7"));
        }
        let mut values = [1.0; 64];
        values[5] = f32::NAN;
        assert!(refused(&values, &[1, 64], 1, 4).contains("value 5 is NaN"));
        assert!(refused(&[1e7; 64], &[1, 64], 1, 4).contains("block 0"));
        let few = block_scales(&[1.0; 64], &[1, 64], 1, 4, Some(&[1.0; 3]));
        assert!(few.unwrap_err().to_string().contains("3 weights"));
        let numbers = |numbers: &[u8], scales: usize| {
            let made = BlockTensor::of_numbers(numbers, vec![f16::ONE; scales], &[1, 64], 1, 3);
            made.unwrap_err().to_string()
        };
        assert!(numbers(&[0; 63], 1).contains("63 numbers"));
        assert!(numbers(&[0; 64], 2).contains("2 scales"));
        assert!(numbers(&[8; 64], 1).contains("3 bits do not hold"));
        let mut tensor = quantize_blocks(&[1.0; 64], &[1, 64], 1, 5).unwrap();
        tensor.planes[1].pop();
        let error = dequantize_blocks(&tensor).unwrap_err().to_string();
        assert!(error.contains("[32, 7] bytes"), "{error}");
    }
}
