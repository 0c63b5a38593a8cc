//! Tensors of the contract to tract's and back.

use isovec_engine::tensor::{DType, Tensor};
use isovec_engine::{EngineError, Result};
use tract_onnx::prelude::{DatumType, Tensor as TractTensor};
use tract_onnx::tract_core::internal::Datum;

use crate::ENGINE;

/// The runtime's word for an element type, where it has that.
pub(crate) fn datum_type(dtype: DType) -> Option<DatumType> {
    Some(match dtype {
        DType::F32 => DatumType::F32,
        DType::F16 => DatumType::F16,
        DType::I64 => DatumType::I64,
        DType::I32 => DatumType::I32,
        DType::U8 => DatumType::U8,
        DType::I8 => DatumType::I8,
        DType::BF16 => return None,
    })
}

fn dtype(datum_type: DatumType) -> Option<DType> {
    Some(match datum_type {
        DatumType::F32 => DType::F32,
        DatumType::F16 => DType::F16,
        DatumType::I64 => DType::I64,
        DatumType::I32 => DType::I32,
        DatumType::U8 => DType::U8,
        DatumType::I8 => DType::I8,
        _ => return None,
    })
}

/// A tensor of the runtime's from raw little-endian bytes, whose length must match.
pub(crate) fn from_bytes(
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> Result<TractTensor, String> {
    let datum_type =
        datum_type(dtype).ok_or_else(|| format!("{dtype} is a type that tract does not have"))?;
    let size = shape
        .iter()
        .try_fold(dtype.size(), |size, &extent| size.checked_mul(extent))
        .unwrap_or(usize::MAX);
    if size != bytes.len() {
        return Err(format!(
            "{dtype} {shape:?} takes {size} bytes, not {}",
            bytes.len()
        ));
    }
    // Filling a tensor with zeros first took 60 ms of a model's load in a browser.
    // SAFETY: a `DType` is a plain number, for which every pattern of bits is a value.
    let tensor = unsafe { TractTensor::from_raw_dt(datum_type, shape, bytes) };
    tensor.map_err(|error| format!("{error:#}"))
}

/// An input for the runtime: a copy, small beside the work it causes.
pub(crate) fn to_runtime(name: &str, tensor: &Tensor) -> Result<TractTensor> {
    from_bytes(tensor.dtype(), tensor.shape(), tensor.bytes()).map_err(|detail| {
        EngineError::InvalidInput {
            name: name.to_owned(),
            detail,
        }
    })
}

/// An output of the runtime, as the contract carries it.
pub(crate) fn from_runtime(name: &str, tensor: &TractTensor) -> Result<Tensor> {
    let fail = |detail: String| EngineError::Runtime {
        engine: ENGINE,
        doing: "reading an output",
        detail: format!("{name}: {detail}"),
    };
    // Symbolic extents are integers once the batch is known, and truth values are bytes.
    let plain = match tensor.datum_type() {
        DatumType::TDim => tensor.cast_to_dt(i64::datum_type()),
        DatumType::Bool => tensor.cast_to_dt(u8::datum_type()),
        _ => Ok(std::borrow::Cow::Borrowed(tensor)),
    }
    .map_err(|error| fail(format!("{error:#}")))?;
    let dtype = dtype(plain.datum_type()).ok_or_else(|| {
        fail(format!(
            "is {:?}, a type isovec does not carry",
            plain.datum_type()
        ))
    })?;
    Tensor::from_bytes(dtype, plain.shape(), plain.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tract_onnx::prelude::tensor1;

    #[test]
    fn every_type_goes_there_and_back() {
        for (dtype, bytes) in [
            (DType::F32, &[0, 0, 128, 63, 0, 0, 0, 64][..]),
            (DType::F16, &[0, 60, 0, 64]),
            (
                DType::I64,
                &[
                    7, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
                ],
            ),
            (DType::I32, &[1, 0, 0, 0, 2, 0, 0, 0]),
            (DType::U8, &[1, 255]),
            (DType::I8, &[1, 255]),
        ] {
            let tensor = Tensor::from_bytes(dtype, &[1, 2], bytes).unwrap();
            let there = to_runtime("x", &tensor).unwrap();
            let back = from_runtime("x", &there).unwrap();
            assert_eq!(
                (back.dtype(), back.shape(), back.bytes()),
                (dtype, &[1, 2][..], bytes)
            );
        }
    }

    #[test]
    fn truth_values_are_bytes_and_strings_are_refused() {
        let flags = from_runtime("x", &tensor1(&[true, false])).unwrap();
        assert_eq!(flags.as_slice::<u8>().unwrap(), &[1, 0]);
        let words = tensor1(&["a".to_owned()]);
        assert!(matches!(
            from_runtime("x", &words),
            Err(EngineError::Runtime { .. })
        ));
    }
}
