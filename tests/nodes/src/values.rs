//! Tensors of the tests' files as numbers.

use half::{bf16, f16};
use isovec_engine::onnx::proto::{DataType, TensorProto};

/// A tensor's numbers, whatever its type: f64 holds all that the tests have, but for the last bits of
/// whole numbers beyond 2^53, which the tolerance does not see.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// The element type.
    pub data_type: DataType,
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// Row-major.
    pub values: Vec<f64>,
}

impl Numbers {
    /// A tensor's numbers.
    ///
    /// # Errors
    /// In words, for a type that is not read here and for a tensor that is not as large as its shape.
    pub fn of(tensor: &TensorProto) -> Result<Self, String> {
        let data_type = DataType::try_from(tensor.data_type)
            .map_err(|_| format!("element type {} is not known", tensor.data_type))?;
        let shape = tensor.dims.iter().map(|&extent| usize::try_from(extent));
        let shape: Vec<usize> = shape
            .collect::<Result<_, _>>()
            .map_err(|_| format!("extents {:?}", tensor.dims))?;
        // The few that are stored in a list are of a byte each, or of 16 bits.
        let listed = tensor.int32_data.iter().flat_map(|&entry| {
            let entry = entry.to_le_bytes();
            entry[..bits(data_type).div_ceil(8).min(4)].to_vec()
        });
        let listed: Vec<u8> = listed.collect();
        let bytes = match listed.is_empty() {
            true => &tensor.raw_data[..],
            false => &listed,
        };
        Self::from_bytes(data_type, shape, bytes)
    }

    /// The numbers of little-endian bytes.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn from_bytes(
        data_type: DataType,
        shape: Vec<usize>,
        bytes: &[u8],
    ) -> Result<Self, String> {
        let count: usize = shape.iter().product();
        let mut values = decode(data_type, bytes)
            .ok_or_else(|| format!("{data_type:?} is not read by this harness"))?;
        // The last byte of numbers of 4 bits may be half empty.
        if bits(data_type) == 4 && values.len() == count + 1 {
            values.pop();
        }
        if values.len() != count {
            return Err(format!("{} numbers for the shape {shape:?}", values.len()));
        }
        Ok(Self {
            data_type,
            shape,
            values,
        })
    }
}

/// Bits of an element.
fn bits(data_type: DataType) -> usize {
    match data_type {
        DataType::Uint4 | DataType::Int4 | DataType::Float4e2m1 => 4,
        DataType::Float16 | DataType::Bfloat16 | DataType::Uint16 | DataType::Int16 => 16,
        DataType::Float | DataType::Int32 | DataType::Uint32 => 32,
        DataType::Double | DataType::Int64 | DataType::Uint64 | DataType::Complex64 => 64,
        _ => 8,
    }
}

fn decode(data_type: DataType, bytes: &[u8]) -> Option<Vec<f64>> {
    fn all<const N: usize>(bytes: &[u8], f: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|&chunk| f(chunk)).collect()
    }
    let each = |f: &dyn Fn(u8) -> f64| bytes.iter().map(|&byte| f(byte)).collect();
    let halves = |f: &dyn Fn(u8) -> f64| {
        let halves = bytes.iter().flat_map(|&byte| [byte & 15, byte >> 4]);
        halves.map(f).collect()
    };
    Some(match data_type {
        DataType::Float => all(bytes, |b| f64::from(f32::from_le_bytes(b))),
        DataType::Double => all(bytes, f64::from_le_bytes),
        DataType::Float16 => all(bytes, |b| f16::from_le_bytes(b).to_f64()),
        DataType::Bfloat16 => all(bytes, |b| bf16::from_le_bytes(b).to_f64()),
        DataType::Int64 => all(bytes, |b| i64::from_le_bytes(b) as f64),
        DataType::Uint64 => all(bytes, |b| u64::from_le_bytes(b) as f64),
        DataType::Int32 => all(bytes, |b| f64::from(i32::from_le_bytes(b))),
        DataType::Uint32 => all(bytes, |b| f64::from(u32::from_le_bytes(b))),
        DataType::Int16 => all(bytes, |b| f64::from(i16::from_le_bytes(b))),
        DataType::Uint16 => all(bytes, |b| f64::from(u16::from_le_bytes(b))),
        DataType::Int8 => each(&|b| f64::from(b as i8)),
        DataType::Uint8 | DataType::Bool => each(&f64::from),
        DataType::Int4 => halves(&|b| f64::from((b << 4) as i8 >> 4)),
        DataType::Uint4 => halves(&f64::from),
        DataType::Float4e2m1 => halves(&|b| small(b << 4, 2, 1, Special::None)),
        DataType::Float8e4m3fn => each(&|b| small(b, 4, 7, Special::LastIsNan)),
        DataType::Float8e4m3fnuz => each(&|b| small(b, 4, 8, Special::MinusZeroIsNan)),
        DataType::Float8e5m2 => each(&|b| small(b, 5, 15, Special::Ieee)),
        DataType::Float8e5m2fnuz => each(&|b| small(b, 5, 16, Special::MinusZeroIsNan)),
        _ => return None,
    })
}

/// What a small float has beside numbers.
#[derive(Clone, Copy, PartialEq)]
enum Special {
    None,
    /// All bits but the sign.
    LastIsNan,
    /// The pattern of minus zero.
    MinusZeroIsNan,
    /// Infinities and NaN at the largest exponent, as IEEE 754 has them.
    Ieee,
}

/// A float of at most 8 bits, of which the sign is the first: ONNX's "Float stored in 8 bits"
/// (<https://onnx.ai/onnx/technical/float8.html>).
fn small(byte: u8, exponent_bits: u32, bias: i32, special: Special) -> f64 {
    let mantissa_bits = 7 - exponent_bits;
    let sign = if byte & 0x80 == 0 { 1.0 } else { -1.0 };
    let largest = (1 << exponent_bits) - 1;
    let exponent = i32::from(byte >> mantissa_bits) & largest;
    let mantissa = i32::from(byte) & ((1 << mantissa_bits) - 1);
    match special {
        Special::LastIsNan if byte & 0x7f == 0x7f => return f64::NAN,
        Special::MinusZeroIsNan if byte == 0x80 => return f64::NAN,
        Special::Ieee if exponent == largest && mantissa == 0 => return sign * f64::INFINITY,
        Special::Ieee if exponent == largest => return f64::NAN,
        _ => {}
    }
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    sign * match exponent {
        0 => fraction * 2_f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2_f64.powi(exponent - bias),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A test that cannot go on should stop there.

    use super::*;

    fn read(data_type: DataType, bytes: &[u8], count: usize) -> Vec<f64> {
        let numbers = Numbers::from_bytes(data_type, vec![count], bytes);
        numbers.unwrap().values
    }

    /// The largest, the smallest and what is no number, as ONNX's tables have them.
    #[test]
    fn small_floats_are_those_of_the_specification() {
        let e4m3fn = read(DataType::Float8e4m3fn, &[0x7e, 0x01, 0xfe, 0x7f], 4);
        assert_eq!(e4m3fn[..3], [448.0, 2_f64.powi(-9), -448.0]);
        assert!(e4m3fn[3].is_nan());
        let fnuz = read(DataType::Float8e4m3fnuz, &[0x7f, 0x80], 2);
        assert!(fnuz[0] == 240.0 && fnuz[1].is_nan());
        let e5m2 = read(DataType::Float8e5m2, &[0x7b, 0x7c, 0xfc, 0x7d, 0x01], 5);
        assert_eq!(e5m2[..3], [57344.0, f64::INFINITY, f64::NEG_INFINITY]);
        assert!(e5m2[3].is_nan() && e5m2[4] == 2_f64.powi(-16));
        let fnuz = read(DataType::Float8e5m2fnuz, &[0x7f], 1);
        assert_eq!(fnuz, [57344.0]);
        // The first of two is in the low half; the last half of an odd number is nobody's.
        let fours = read(DataType::Float4e2m1, &[0x71, 0x0f], 3);
        assert_eq!(fours, [0.5, 6.0, -6.0]);
        assert_eq!(read(DataType::Int4, &[0x8f, 0x07], 3), [-1.0, -8.0, 7.0]);
    }

    #[test]
    fn bytes_that_are_not_as_many_as_the_shape_says_are_refused() {
        assert!(Numbers::from_bytes(DataType::Float, vec![2], &[0; 4]).is_err());
        assert!(Numbers::from_bytes(DataType::String, vec![0], &[]).is_err());
    }
}
