//! Converts stored weights to f32.

use crate::simd::multiversion;

/// The value of IEEE 754 binary16 bits, exactly. NaN stays NaN.
///
/// The exponent is moved by a multiplication, which makes subnormal numbers normal on the way.
#[inline(always)]
pub(crate) fn f16(bits: u16) -> f32 {
    /// 2^112: the difference between the exponents' biases.
    const BIAS: f32 = f32::from_bits((112 + 127) << 23);
    let bits = u32::from(bits);
    let magnitude = (bits & 0x7fff) << 13;
    let finite = f32::from_bits(magnitude) * BIAS;
    let special = f32::from_bits(magnitude | 0x7f80_0000);
    let value = if bits & 0x7c00 == 0x7c00 {
        special
    } else {
        finite
    };
    f32::from_bits(value.to_bits() | (bits & 0x8000) << 16)
}

/// The value of bfloat16 bits, exactly.
#[inline(always)]
pub(crate) fn bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

multiversion! {
    /// The f32 values of little-endian IEEE 754 binary16, as checkpoints store them.
    ///
    /// # Panics
    /// When there are not two bytes for every value of `out`.
    pub fn f16_to_f32(bytes: &[u8], out: &mut [f32]) {
        let (pairs, rest) = bytes.as_chunks::<2>();
        assert!(rest.is_empty() && pairs.len() == out.len(), "{} bytes for {} values", bytes.len(), out.len());
        for (out, pair) in out.iter_mut().zip(pairs) {
            *out = f16(u16::from_le_bytes(*pair));
        }
    }
}

multiversion! {
    /// The f32 values of little-endian bfloat16, as checkpoints store them.
    ///
    /// # Panics
    /// When there are not two bytes for every value of `out`.
    pub fn bf16_to_f32(bytes: &[u8], out: &mut [f32]) {
        let (pairs, rest) = bytes.as_chunks::<2>();
        assert!(rest.is_empty() && pairs.len() == out.len(), "{} bytes for {} values", bytes.len(), out.len());
        for (out, pair) in out.iter_mut().zip(pairs) {
            *out = bf16(u16::from_le_bytes(*pair));
        }
    }
}

multiversion! {
    /// `value * scale` for `[rows, width]` with a scale for every row.
    ///
    /// # Panics
    /// When the values are not as many rows as there are scales, or `out` has another length.
    pub fn dequantize_rows(values: &[i8], scales: &[f32], out: &mut [f32]) {
        let width = values.len().checked_div(scales.len()).unwrap_or(0);
        assert!(
            width * scales.len() == values.len() && out.len() == values.len(),
            "{} values with {} scales to {}", values.len(), scales.len(), out.len()
        );
        if width == 0 {
            return;
        }
        let rows = values.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((values, out), scale) in rows.zip(scales) {
            for (out, value) in out.iter_mut().zip(values) {
                *out = f32::from(*value) * scale;
            }
        }
    }
}

multiversion! {
    /// `value * scale` for `[rows, width]` with a scale for every column.
    ///
    /// # Panics
    /// When the values are not rows of as many as there are scales, or `out` has another length.
    pub fn dequantize_columns(values: &[i8], scales: &[f32], out: &mut [f32]) {
        let width = scales.len();
        assert!(
            values.len().is_multiple_of(width) && out.len() == values.len(),
            "{} values with {} scales to {}", values.len(), scales.len(), out.len()
        );
        if width == 0 {
            return;
        }
        for (values, out) in values.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for ((out, value), scale) in out.iter_mut().zip(values).zip(scales) {
                *out = f32::from(*value) * scale;
            }
        }
    }
}
