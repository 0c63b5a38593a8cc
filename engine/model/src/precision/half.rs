//! 16-bit floats (IEEE 754 binary16), rounded to nearest.

use half::f16;
use half::slice::HalfFloatSliceExt;

/// The values in 16 bits; what is past their range becomes infinite.
pub(super) fn narrow(values: &[f32]) -> Vec<f16> {
    let mut out = vec![f16::ZERO; values.len()];
    out.convert_from_f32_slice(values);
    out
}

/// What 16 bits take from every value.
pub(super) fn changes(values: &[f32]) -> impl Iterator<Item = f32> {
    values.chunks(1024).flat_map(|values| {
        let stored = widen(&narrow(values));
        values
            .iter()
            .zip(stored)
            .map(|(value, stored)| value - stored)
    })
}

/// The values in 32 bits, all of them exact.
pub(super) fn widen(values: &[f16]) -> Vec<f32> {
    let mut out = vec![0f32; values.len()];
    values.convert_to_f32_slice(&mut out);
    out
}
