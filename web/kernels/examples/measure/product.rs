//! Products of the shapes that models have.

use isovec_kernels::gemm::{
    Activations, Epilogue, Int8Kernel, Int8Weights, Kernel, Mismatch, Packed, Rows, gemm, gemm_int8,
};
use isovec_kernels::parallel::OneThread;

/// How a product is computed.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    F32(&'static Kernel),
    /// Rows are quantised each time, as a model would.
    Int8(&'static Int8Kernel),
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32(kernel) => kernel.name(),
            Self::Int8(kernel) => kernel.name(),
        }
    }
}

enum Weights {
    F32(&'static Kernel, Packed),
    Int8(&'static Int8Kernel, Int8Weights),
}

/// The product of a shape, with its operands.
pub(crate) struct Product {
    m: usize,
    k: usize,
    n: usize,
    a: Vec<f32>,
    quantised: Activations,
    b: Weights,
    c: Vec<f32>,
}

impl Product {
    /// Operands of small values.
    pub(crate) fn new(way: Way, m: usize, k: usize, n: usize) -> Result<Self, Mismatch> {
        let values = |len: usize| (0..len).map(|at| (at % 17) as f32 / 16.0 - 0.5);
        let b: Vec<f32> = values(k * n).collect();
        let b = match way {
            Way::F32(kernel) => Weights::F32(kernel, Packed::new(kernel, (k, n), &b, n, 1)?),
            Way::Int8(kernel) => Weights::Int8(kernel, Int8Weights::new(kernel, (k, n), &b, n, 1)?),
        };
        Ok(Self {
            m,
            k,
            n,
            a: values(m * k).collect(),
            quantised: Activations::default(),
            b,
            c: vec![0.0; m * n],
        })
    }

    /// Computes it on the caller's thread.
    pub(crate) fn run(&mut self) -> Result<(), Mismatch> {
        let a = Rows {
            values: &self.a,
            stride: self.k,
        };
        let none = Epilogue::default();
        match &self.b {
            Weights::F32(kernel, b) => {
                gemm(kernel, self.m, a, b, &none, &mut self.c, self.n, &OneThread)
            }
            Weights::Int8(kernel, b) => {
                self.quantised.quantise(self.m, a, b, &OneThread)?;
                gemm_int8(
                    kernel,
                    &self.quantised,
                    b,
                    &none,
                    &mut self.c,
                    self.n,
                    &OneThread,
                )
            }
        }
    }
}
