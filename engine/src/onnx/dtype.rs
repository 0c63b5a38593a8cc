//! The element types that tensors have, by the numbers of the format.

use super::proto::DataType;
use crate::tensor::DType;

impl From<DType> for DataType {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Self::Float,
            DType::F16 => Self::Float16,
            DType::BF16 => Self::Bfloat16,
            DType::I64 => Self::Int64,
            DType::I32 => Self::Int32,
            DType::U8 => Self::Uint8,
            DType::I8 => Self::Int8,
        }
    }
}

impl TryFrom<DataType> for DType {
    type Error = DataType;

    fn try_from(data_type: DataType) -> Result<Self, DataType> {
        Ok(match data_type {
            DataType::Float => Self::F32,
            DataType::Float16 => Self::F16,
            DataType::Bfloat16 => Self::BF16,
            DataType::Int64 => Self::I64,
            DataType::Int32 => Self::I32,
            DataType::Uint8 => Self::U8,
            DataType::Int8 => Self::I8,
            other => return Err(other),
        })
    }
}
