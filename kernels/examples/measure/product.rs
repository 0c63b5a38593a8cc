//! Products of the shapes that models have.

use isovec_kernels::gemm::{Epilogue, Kernel, Mismatch, Packed, Rows, gemm};
use isovec_kernels::parallel::OneThread;

/// The f32 product of a shape, with its operands.
pub(crate) struct Product {
    kernel: &'static Kernel,
    m: usize,
    a: Vec<f32>,
    b: Packed,
    c: Vec<f32>,
}

impl Product {
    /// Operands of small values.
    pub(crate) fn new(
        kernel: &'static Kernel,
        m: usize,
        k: usize,
        n: usize,
    ) -> Result<Self, Mismatch> {
        let values = |len: usize| (0..len).map(|at| (at % 17) as f32 / 16.0 - 0.5);
        let b: Vec<f32> = values(k * n).collect();
        Ok(Self {
            kernel,
            m,
            a: values(m * k).collect(),
            b: Packed::new(kernel, (k, n), &b, n, 1)?,
            c: vec![0.0; m * n],
        })
    }

    /// Computes it on the caller's thread.
    pub(crate) fn run(&mut self) -> Result<(), Mismatch> {
        let a = Rows {
            values: &self.a,
            stride: self.b.k(),
        };
        let n = self.b.n();
        gemm(
            self.kernel,
            self.m,
            a,
            &self.b,
            &Epilogue::default(),
            &mut self.c,
            n,
            &OneThread,
        )
    }
}
