//! Tables that stay where a mapped file has them.

use bytes::Bytes;
use isovec_engine::bundle::ModelBundle;
use isovec_engine::tensor::DType;
use isovec_engine::weights::WeightInfo;
use isovec_kernels::gemm::Floats;

use crate::load::StoredTable;
use crate::value::Weight;

/// A table of f32s where a mapped file has it: the largest of a model's weights takes no memory then, and no time to be copied.
pub(crate) fn lent(
    bundle: &ModelBundle,
    index: usize,
    info: &WeightInfo,
    weight: &Weight,
) -> Option<StoredTable> {
    let plain = info.dtype == DType::F32 && weight.scale.is_none();
    if !(Floats::CAN_BE_LENT && plain && cfg!(target_endian = "little")) {
        return None;
    }
    let bytes = bundle.weights.lent(index)?;
    let width: usize = weight.shape.get(1..)?.iter().product();
    let row = width.checked_mul(info.dtype.size())?;
    let rows = *weight.shape.first()?;
    let first = weight.first_row.checked_mul(row)?;
    let end = first.checked_add(rows.checked_mul(row)?)?;
    if end > bytes.len() {
        return None;
    }
    let bytes = bytes.slice(first..end);
    // Files that align their tensors to nothing are copied.
    bytemuck::try_cast_slice::<u8, f32>(&bytes).ok()?;
    Floats::lent(Lent(bytes)).map(StoredTable::F32)
}

/// Bytes that are known to be f32s in their place.
struct Lent(Bytes);

impl AsRef<[f32]> for Lent {
    fn as_ref(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }
}
