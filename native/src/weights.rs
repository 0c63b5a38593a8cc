//! A bundle's weights as tensors of ONNX Runtime, without a copy if possible.

use std::ffi::CString;

use bytes::Bytes;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::tensor::Tensor;
use isovec_engine::weights::{WeightInfo, WeightSource};

use crate::explain;
use crate::sys::{Value, Weight};

/// Takes the weights one at a time; stops when `check` fails.
pub(crate) async fn take(
    source: &dyn WeightSource,
    check: impl Fn() -> Result<()>,
) -> Result<Vec<Weight>> {
    let mut taken = Vec::with_capacity(source.weights().len());
    for (index, info) in source.weights().iter().enumerate() {
        check()?;
        let bytes = source.read(index).await?;
        let fail = |detail: String| EngineError::Weight {
            name: info.name.clone(),
            detail,
        };
        if bytes.len() != info.byte_len() {
            return Err(fail(format!(
                "{} {:?} takes {} bytes, not the {} that were read",
                info.dtype,
                info.shape,
                info.byte_len(),
                bytes.len()
            )));
        }
        let name = CString::new(info.name.as_str())
            .map_err(|_| fail("its name holds a zero byte".into()))?;
        let bytes = aligned(info, bytes)?;
        let len = bytes.len();
        let value = Value::lend(info.dtype, &info.shape, bytes)
            .map_err(|error| fail(explain::text(&error)))?;
        taken.push(Weight {
            name,
            value,
            bytes: len,
        });
    }
    Ok(taken)
}

/// The same bytes at an address that fits their type. A file's tensors can start anywhere.
fn aligned(info: &WeightInfo, bytes: Bytes) -> Result<Bytes> {
    if (bytes.as_ptr() as usize).is_multiple_of(info.dtype.size()) {
        return Ok(bytes);
    }
    let tensor = Tensor::from_bytes(info.dtype, &info.shape, &bytes)?;
    Ok(Bytes::from_owner(Owned(tensor)))
}

struct Owned(Tensor);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use isovec_engine::tensor::DType;

    use super::*;

    #[test]
    fn a_weight_at_an_odd_address_is_moved_and_others_stay() {
        let info = WeightInfo {
            name: "w".into(),
            dtype: DType::F32,
            shape: vec![4],
        };
        let file = Bytes::from((0..64).collect::<Vec<u8>>());
        let start = (file.as_ptr() as usize).next_multiple_of(4) - file.as_ptr() as usize;
        let there = file.slice(start..start + 16);
        assert_eq!(
            aligned(&info, there.clone()).unwrap().as_ptr(),
            there.as_ptr()
        );
        let odd = file.slice(start + 1..start + 17);
        let moved = aligned(&info, odd.clone()).unwrap();
        assert_eq!(moved, odd);
        assert!((moved.as_ptr() as usize).is_multiple_of(4));
    }
}
