//! The score of late interaction (MaxSim): the sum over a query's vectors of the largest inner product with a vector of a text.
//!
//! Formula: ColBERT, <https://arxiv.org/abs/2004.12832>, section 3.3. The products of a block of texts are one matrix product in f32,
//! each added up in the order of the components; the largest ones are added in f64.

use std::borrow::Cow;

use isovec_engine::EngineError;

use isovec_kernels::Arithmetic;
use isovec_kernels::gemm::{Epilogue, Kernel, Packed, Rows, gemm};
use isovec_kernels::parallel::OneThread;

use crate::error::Result;
use crate::similarity::Hit;

/// Vectors that are multiplied together: with a query of 32, 32 KB of products, which stay in the first cache. A text is never cut.
const BLOCK: usize = 256;

/// A query's vectors, ready to be multiplied.
pub(super) struct Query {
    kernel: &'static Kernel,
    packed: Packed,
}

impl Query {
    /// Vectors of `dim` components, one after another.
    pub(super) fn new(vectors: &[f32], dim: usize) -> Result<Self> {
        let kernel = Kernel::select(Arithmetic::Fast);
        let packed = Packed::new(kernel, (dim, vectors.len() / dim), vectors, 1, dim);
        Ok(Self {
            kernel,
            packed: packed.map_err(too_large)?,
        })
    }

    /// Calls `hit` with the score of every text that has a vector. Those of text `i` are between `offsets[i]` and `offsets[i + 1]`;
    /// `between` gives vectors by their places.
    pub(super) fn scores<'v>(
        &self,
        offsets: &[usize],
        between: impl Fn(usize, usize) -> Cow<'v, [f32]>,
        mut hit: impl FnMut(Hit),
    ) -> Result<()> {
        let (dim, columns) = (self.packed.k(), self.packed.n());
        let mut products = Vec::new();
        let mut largest = vec![0.0; columns];
        let texts = offsets.len() - 1;
        let mut first = 0;
        while first < texts {
            let start = offsets[first];
            let inside = |end: &&usize| **end <= start + BLOCK;
            let whole = offsets[first + 1..].iter().take_while(inside).count();
            let last = first + whole.max(1);
            let end = offsets[last];
            let vectors = between(start, end);
            products.resize((end - start) * columns, 0.0);
            let rows = Rows {
                values: &vectors,
                stride: dim,
            };
            let epilogue = Epilogue::default();
            let product = gemm(
                self.kernel,
                end - start,
                rows,
                &self.packed,
                &epilogue,
                &mut products,
                columns,
                &OneThread,
            );
            product.map_err(too_large)?;
            for index in (first..last).filter(|&index| offsets[index] < offsets[index + 1]) {
                let own =
                    (offsets[index] - start) * columns..(offsets[index + 1] - start) * columns;
                largest.fill(f32::NEG_INFINITY);
                for row in products[own].chunks_exact(columns) {
                    for (most, &product) in largest.iter_mut().zip(row) {
                        *most = if product > *most { product } else { *most };
                    }
                }
                let score: f64 = largest.iter().map(|&most| f64::from(most)).sum();
                hit(Hit {
                    index,
                    score: score as f32,
                });
            }
            first = last;
        }
        Ok(())
    }
}

/// Operands fit each other, so what is left is memory.
fn too_large(mismatch: impl std::fmt::Display) -> EngineError {
    EngineError::InvalidInput {
        name: "query".into(),
        detail: mismatch.to_string(),
    }
}
