//! Functions of one number.

use isovec_kernels::Activation;

use crate::eval;
use crate::node::Unary;

/// The function for a stretch of a row, where it needs no parameter: what an epilogue takes.
pub(crate) fn activation(f: Unary) -> Option<fn(&mut [f32])> {
    Some(match f {
        Unary::Gelu => |x| Activation::Gelu.apply(x),
        Unary::GeluTanh => |x| Activation::GeluTanh.apply(x),
        Unary::Relu => |x| Activation::Relu.apply(x),
        Unary::Sigmoid => |x| Activation::Sigmoid.apply(x),
        Unary::Swish(1.0) => |x| Activation::Silu.apply(x),
        Unary::Swish(1.702) => |x| Activation::GeluSigmoid.apply(x),
        Unary::Tanh => |x| Activation::Tanh.apply(x),
        _ => return None,
    })
}

/// `x = f(x)`.
pub(super) fn apply(f: Unary, x: &mut [f32]) {
    if let Some(activation) = activation(f) {
        return activation(x);
    }
    match f {
        Unary::Affine { factor, shift } => each(x, |x| factor * x + shift),
        Unary::Abs => each(x, f32::abs),
        Unary::Erf => Activation::Erf.apply(x),
        Unary::Exp => Activation::Exp.apply(x),
        Unary::Log => each(x, libm::logf),
        Unary::Swish(slope) => each(x, |x| x / (1.0 + libm::expf(-slope * x))),
        Unary::Reciprocal => each(x, |x| 1.0 / x),
        Unary::Sqrt => each(x, f32::sqrt),
        Unary::Square => each(x, |x| x * x),
        // In this order, so that NaN stays NaN.
        Unary::Clamp { least, most } => each(x, |x| {
            let x = if x < least { least } else { x };
            if x > most { most } else { x }
        }),
        // Seldom on a path that anyone waits for: one loop for all of them.
        rare => each(x, |x| eval::unary(rare, x.into()) as f32),
    }
}

fn each(x: &mut [f32], f: impl Fn(f32) -> f32) {
    for x in x {
        *x = f(*x);
    }
}
