//! Activations, element by element.

use crate::columns::Columns;
use crate::math;
use crate::simd::multiversion;

/// A function that is applied to every element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `x / 2 * (1 + erf(x / sqrt(2)))`, within 2e-7 or one ULP, whichever is more.
    Gelu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`, within 2e-7 or one ULP.
    GeluTanh,
    /// `x * sigmoid(1.702 x)`, within 2e-7 or one ULP.
    GeluSigmoid,
    /// `x * sigmoid(x)`, within 2e-7 or one ULP.
    Silu,
    /// `x * min(max(x / 6 + 1/2, 0), 1)` (<https://arxiv.org/abs/1905.02244>).
    HardSwish,
    /// Hyperbolic tangent, within 6 ULP.
    Tanh,
    /// `1 / (1 + e^-x)`, within 3 ULP; 0 below -87.3.
    Sigmoid,
    /// The error function, within 6 ULP.
    Erf,
    /// `e^x`, within 1.5 ULP.
    Exp,
}

impl Activation {
    /// Replaces every element.
    pub fn apply(self, x: &mut [f32]) {
        self.function()(x);
    }

    /// What [`apply`](Self::apply) calls: for an [`Epilogue`](crate::gemm::Epilogue).
    pub fn function(self) -> fn(&mut [f32]) {
        match self {
            Self::Relu => relu,
            Self::Gelu => gelu,
            Self::GeluTanh => gelu_tanh,
            Self::GeluSigmoid => gelu_sigmoid,
            Self::Silu => silu,
            Self::HardSwish => hard_swish,
            Self::Tanh => tanh,
            Self::Sigmoid => sigmoid,
            Self::Erf => erf,
            Self::Exp => exp,
        }
    }

    /// `out = activation(a) * b`, the gate of SwiGLU and GeGLU
    /// (<https://arxiv.org/abs/2002.05202>). `out` is `[rows, width]`.
    ///
    /// # Panics
    /// When the extents of `a`, `b` and `out` differ.
    pub fn gate(self, a: Columns<'_>, b: Columns<'_>, out: &mut [f32]) {
        let width = a.width();
        assert!(
            b.width() == width && b.rows() == a.rows() && out.len() == a.rows() * width,
            "a gate of [{}, {width}] and [{}, {}] to {} values",
            a.rows(),
            b.rows(),
            b.width(),
            out.len()
        );
        if width == 0 {
            return;
        }
        for (row, out) in out.chunks_exact_mut(width).enumerate() {
            out.copy_from_slice(a.row(row));
            self.apply(out);
            multiply(out, b.row(row));
        }
    }
}

macro_rules! elementwise {
    ($($name:ident),*) => {$(
        multiversion! {
            fn $name(x: &mut [f32]) {
                for x in x {
                    *x = math::$name(*x);
                }
            }
        }
    )*};
}
elementwise!(
    relu,
    gelu,
    gelu_tanh,
    gelu_sigmoid,
    silu,
    hard_swish,
    tanh,
    sigmoid,
    erf,
    exp
);

multiversion! {
    fn multiply(x: &mut [f32], by: &[f32]) {
        for (x, by) in x.iter_mut().zip(by) {
            *x *= by;
        }
    }
}
