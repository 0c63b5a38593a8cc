//! What a program did in one step.

use super::Detail;

/// The description of one step of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stepped {
    /// The operator.
    pub operator: &'static str,
    /// Columns of its input, where that says more of it: `k` of a product or a convolution, or the size of a head; else 0.
    pub inner: usize,
    /// Columns, or channels, of its result.
    pub width: usize,
    /// Rows, or pixels, that were computed.
    pub rows: usize,
    /// Multiplications with additions.
    pub multiply_adds: u64,
    /// Bytes of the result.
    pub bytes: u64,
}

impl From<Stepped> for Detail {
    fn from(step: Stepped) -> Self {
        Self::Operator {
            rows: step.rows,
            inner: step.inner,
            width: step.width,
            multiply_adds: step.multiply_adds,
            bytes: step.bytes,
        }
    }
}
