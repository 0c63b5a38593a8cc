//! Little-endian bytes of a weight as numbers, and back.

use bytes::Bytes;
use half::f16;

pub(super) fn f32_iter(data: &[u8]) -> impl ExactSizeIterator<Item = f32> {
    let (values, _) = data.as_chunks::<4>();
    values.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

pub(super) fn f32s(data: &[u8]) -> Vec<f32> {
    f32_iter(data).collect()
}

pub(super) fn f16s(data: &[u8]) -> Vec<f16> {
    let (values, _) = data.as_chunks::<2>();
    values
        .iter()
        .map(|bytes| f16::from_le_bytes(*bytes))
        .collect()
}

pub(super) fn of_f32s(values: &[f32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<u8>>()
        .into()
}

pub(super) fn of_f16s(values: &[f16]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<u8>>()
        .into()
}

pub(super) fn of_i8s(values: Vec<i8>) -> Bytes {
    bytemuck::allocation::cast_vec::<i8, u8>(values).into()
}
