//! Small constants as numbers.

use bytes::Bytes;
use isovec_engine::onnx::proto::{DataType, TensorProto};

/// A tensor whose numbers are at hand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Value {
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Numbers,
}

/// The numbers of a tensor, of the types that shapes are computed with.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    F32(Vec<f32>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    Bool(Vec<bool>),
}

impl Value {
    /// Whole numbers in one row.
    pub(super) fn row(numbers: Vec<i64>) -> Self {
        Self {
            shape: vec![numbers.len()],
            numbers: Numbers::I64(numbers),
        }
    }

    /// Of a tensor that has its bytes in it; none for other types.
    pub(super) fn of(tensor: &TensorProto) -> Option<Self> {
        let extents = tensor.dims.iter();
        let shape: Vec<usize> = extents
            .map(|&extent| extent.try_into().ok())
            .collect::<Option<_>>()?;
        let bytes = &tensor.raw_data;
        let numbers = match DataType::try_from(tensor.data_type).ok()? {
            DataType::Float => Numbers::F32(read(bytes, f32::from_le_bytes)),
            DataType::Int64 => Numbers::I64(read(bytes, i64::from_le_bytes)),
            DataType::Int32 => Numbers::I32(read(bytes, i32::from_le_bytes)),
            DataType::Bool => Numbers::Bool(bytes.iter().map(|&byte| byte != 0).collect()),
            _ => return None,
        };
        let count = shape
            .iter()
            .try_fold(1usize, |all, &extent| all.checked_mul(extent))?;
        (numbers.len() == count).then_some(Self { shape, numbers })
    }

    /// As a constant of a graph.
    pub(super) fn tensor(&self, name: &str) -> TensorProto {
        let (data_type, bytes) = match &self.numbers {
            Numbers::F32(numbers) => (DataType::Float, written(numbers, |n| n.to_le_bytes())),
            Numbers::I64(numbers) => (DataType::Int64, written(numbers, |n| n.to_le_bytes())),
            Numbers::I32(numbers) => (DataType::Int32, written(numbers, |n| n.to_le_bytes())),
            Numbers::Bool(numbers) => (DataType::Bool, written(numbers, |n| [u8::from(n)])),
        };
        TensorProto {
            name: name.to_owned(),
            data_type: data_type as i32,
            dims: self.shape.iter().map(|&extent| extent as i64).collect(),
            raw_data: bytes,
            ..TensorProto::default()
        }
    }

    /// The only number, where it is a float.
    pub(super) fn float(&self) -> Option<f32> {
        match &self.numbers {
            Numbers::F32(numbers) => match numbers.as_slice() {
                [one] => Some(*one),
                _ => None,
            },
            _ => None,
        }
    }

    /// All numbers, where they are floats.
    pub(super) fn floats(&self) -> Option<&[f32]> {
        match &self.numbers {
            Numbers::F32(numbers) => Some(numbers),
            _ => None,
        }
    }

    /// All numbers, where they are whole ones.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match &self.numbers {
            Numbers::I64(numbers) => Some(numbers.clone()),
            Numbers::I32(numbers) => Some(numbers.iter().map(|&n| n.into()).collect()),
            _ => None,
        }
    }
}

impl Numbers {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::F32(numbers) => numbers.len(),
            Self::I64(numbers) => numbers.len(),
            Self::I32(numbers) => numbers.len(),
            Self::Bool(numbers) => numbers.len(),
        }
    }

    /// Bytes of them.
    pub(super) fn bytes(&self) -> usize {
        self.len()
            * match self {
                Self::F32(_) | Self::I32(_) => 4,
                Self::I64(_) => 8,
                Self::Bool(_) => 1,
            }
    }

    /// The numbers at these places, which are inside.
    pub(super) fn at(&self, places: &[usize]) -> Self {
        match self {
            Self::F32(numbers) => Self::F32(picked(numbers, places)),
            Self::I64(numbers) => Self::I64(picked(numbers, places)),
            Self::I32(numbers) => Self::I32(picked(numbers, places)),
            Self::Bool(numbers) => Self::Bool(picked(numbers, places)),
        }
    }
}

fn picked<T: Copy>(numbers: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| numbers[place]).collect()
}

fn read<T, const N: usize>(bytes: &[u8], from: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (whole, _) = bytes.as_chunks::<N>();
    whole.iter().map(|bytes| from(*bytes)).collect()
}

fn written<T: Copy, const N: usize>(numbers: &[T], to: impl Fn(T) -> [u8; N]) -> Bytes {
    numbers.iter().flat_map(|&number| to(number)).collect()
}
