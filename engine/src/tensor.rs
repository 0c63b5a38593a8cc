//! Tensors in host memory: contiguous, row-major, 64-byte aligned.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use smallvec::SmallVec;

use crate::{EngineError, Result};

/// The element types that cross the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DType {
    F32,
    F16,
    BF16,
    I64,
    I32,
    U8,
    I8,
}

impl DType {
    /// Bytes an element takes.
    pub const fn size(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::I64 => 8,
            Self::U8 | Self::I8 => 1,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::U8 => "u8",
            Self::I8 => "i8",
        })
    }
}

/// A Rust type that is an element of a [`Tensor`].
pub trait Element: Pod {
    /// Its [`DType`].
    const DTYPE: DType;
}

macro_rules! element {
    ($($ty:ty => $dtype:ident),*) => { $(impl Element for $ty { const DTYPE: DType = DType::$dtype; })* };
}
element!(f32 => F32, f16 => F16, bf16 => BF16, i64 => I64, i32 => I32, u8 => U8, i8 => I8);

/// One cache line; the unit of allocation, which gives every tensor its alignment.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE]);

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Takes back the memory of tensors that are gone.
pub(crate) trait Home: Send + Sync {
    fn take_back(&self, lines: Vec<Line>);
}

/// A tensor's memory, which goes home when the tensor is dropped.
struct Memory {
    lines: Vec<Line>,
    home: Option<Arc<dyn Home>>,
}

impl Memory {
    fn new(bytes: usize) -> Self {
        Self {
            lines: vec![Line::zeroed(); bytes.div_ceil(LINE)],
            home: None,
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.take_back(std::mem::take(&mut self.lines));
        }
    }
}

/// A copy belongs to nobody.
impl Clone for Memory {
    fn clone(&self) -> Self {
        Self {
            lines: self.lines.clone(),
            home: None,
        }
    }
}

/// Extents, without an allocation up to four of them.
type Shape = SmallVec<[usize; 4]>;

/// A named type, shape and bytes. Owned, so that it can move to an engine's thread and back
/// without a copy even when the caller stops waiting.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    memory: Memory,
}

impl Tensor {
    /// All zeros.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when the size in bytes overflows.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = byte_len(dtype, shape)?;
        Ok(Self {
            dtype,
            shape: Shape::from_slice(shape),
            memory: Memory::new(bytes),
        })
    }

    /// A tensor in memory that goes back to `home`. There is enough of it; what it holds is what
    /// its last user left.
    pub(crate) fn in_memory(
        dtype: DType,
        shape: &[usize],
        lines: Vec<Line>,
        home: Arc<dyn Home>,
    ) -> Self {
        Self {
            dtype,
            shape: Shape::from_slice(shape),
            memory: Memory {
                lines,
                home: Some(home),
            },
        }
    }

    /// A copy of `values` in the given shape.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] when the shape does not hold exactly that many values.
    pub fn from_slice<T: Element>(shape: &[usize], values: &[T]) -> Result<Self> {
        let mut tensor = Self::zeros(T::DTYPE, shape)?;
        let slice = tensor.as_mut_slice::<T>()?;
        if slice.len() != values.len() {
            return Err(EngineError::InvalidInput {
                name: "tensor".into(),
                detail: format!(
                    "shape {shape:?} holds {} values, not {}",
                    slice.len(),
                    values.len()
                ),
            });
        }
        slice.copy_from_slice(values);
        Ok(tensor)
    }

    /// A copy of raw little-endian bytes in the given type and shape.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] when the length does not match.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Self> {
        let mut tensor = Self::zeros(dtype, shape)?;
        if tensor.byte_len() != bytes.len() {
            return Err(EngineError::InvalidInput {
                name: "tensor".into(),
                detail: format!(
                    "{dtype} {shape:?} takes {} bytes, not {}",
                    tensor.byte_len(),
                    bytes.len()
                ),
            });
        }
        tensor.bytes_mut().copy_from_slice(bytes);
        Ok(tensor)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size in bytes, padding to the cache line not counted.
    pub fn byte_len(&self) -> usize {
        self.len() * self.dtype.size()
    }

    /// Bytes of memory held, which may be more than [`byte_len`](Self::byte_len) after a reshape.
    pub fn capacity(&self) -> usize {
        self.memory.lines.capacity() * LINE
    }

    /// The elements' bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.memory.lines)[..self.len() * self.dtype.size()]
    }

    /// The elements' bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.byte_len();
        &mut bytemuck::cast_slice_mut(&mut self.memory.lines)[..len]
    }

    /// The elements.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] when `T` is not the element type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.expect_dtype(T::DTYPE)?;
        Ok(bytemuck::cast_slice(self.bytes()))
    }

    /// The elements, to write.
    ///
    /// # Errors
    /// [`EngineError::InvalidInput`] when `T` is not the element type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect_dtype(T::DTYPE)?;
        Ok(bytemuck::cast_slice_mut(self.bytes_mut()))
    }

    /// Takes another type and shape, keeping the allocation where it is large enough. The
    /// contents are unspecified until written.
    ///
    /// # Errors
    /// [`EngineError::InputTooLarge`] when the size in bytes overflows.
    pub fn reset(&mut self, dtype: DType, shape: &[usize]) -> Result<()> {
        let bytes = byte_len(dtype, shape)?;
        let lines = bytes.div_ceil(LINE);
        if lines > self.memory.lines.len() {
            self.memory.lines.resize(lines, Line::zeroed());
        }
        self.dtype = dtype;
        self.shape.clear();
        self.shape.extend_from_slice(shape);
        Ok(())
    }

    fn expect_dtype(&self, asked: DType) -> Result<()> {
        if self.dtype == asked {
            return Ok(());
        }
        Err(EngineError::InvalidInput {
            name: "tensor".into(),
            detail: format!("holds {}, not {asked}", self.dtype),
        })
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({} {:?})", self.dtype, self.shape)
    }
}

/// A tensor with the name that the model gives it.
#[derive(Debug, Clone)]
pub struct NamedTensor {
    /// The graph's name of the input or output; shared, so that a clone allocates nothing.
    pub name: Arc<str>,
    /// Its value.
    pub tensor: Tensor,
}

impl NamedTensor {
    /// Pairs a name with a tensor.
    pub fn new(name: impl Into<Arc<str>>, tensor: Tensor) -> Self {
        Self {
            name: name.into(),
            tensor,
        }
    }
}

/// The size in bytes of a tensor, checked.
pub(crate) fn byte_len(dtype: DType, shape: &[usize]) -> Result<usize> {
    shape
        .iter()
        .try_fold(dtype.size(), |bytes, &extent| bytes.checked_mul(extent))
        .filter(|&bytes| bytes <= isize::MAX as usize - 64)
        .ok_or(EngineError::InputTooLarge {
            asked: u64::MAX,
            limit: isize::MAX as u64,
            unit: "bytes",
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_round_trip_and_are_aligned() {
        let tensor = Tensor::from_slice(&[2, 3], &[1i64, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(tensor.as_slice::<i64>().unwrap(), &[1, 2, 3, 4, 5, 6]);
        assert_eq!(tensor.bytes().as_ptr() as usize % 64, 0);
        assert_eq!(tensor.byte_len(), 48);
        assert!(tensor.as_slice::<f32>().is_err());
    }

    #[test]
    fn empty_tensors_are_allowed() {
        let tensor = Tensor::zeros(DType::F32, &[0, 384]).unwrap();
        assert!(tensor.is_empty());
        assert!(tensor.as_slice::<f32>().unwrap().is_empty());
    }

    #[test]
    fn a_size_that_overflows_is_refused() {
        assert!(matches!(
            Tensor::zeros(DType::I64, &[usize::MAX, 2]),
            Err(EngineError::InputTooLarge { .. })
        ));
    }

    #[test]
    fn reset_keeps_the_allocation() {
        let mut tensor = Tensor::zeros(DType::F32, &[64, 64]).unwrap();
        let held = tensor.capacity();
        tensor.reset(DType::I64, &[4, 8]).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.byte_len()),
            (DType::I64, &[4, 8][..], 256)
        );
        assert_eq!(tensor.capacity(), held);
    }
}
