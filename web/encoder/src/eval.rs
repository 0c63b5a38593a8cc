//! Functions in double precision: of numbers that are known while a graph is read, and the seldom ones of others.

use crate::node::Unary;

/// `f(x)` in double precision; the caller rounds.
pub(crate) fn unary(f: Unary, x: f64) -> f64 {
    let flag = |truth: bool| f64::from(u8::from(truth));
    match f {
        Unary::Affine { factor, shift } => f64::from(factor) * x + f64::from(shift),
        Unary::Abs => x.abs(),
        Unary::Acos => libm::acos(x),
        Unary::Acosh => libm::acosh(x),
        Unary::Asin => libm::asin(x),
        Unary::Asinh => libm::asinh(x),
        Unary::Atan => libm::atan(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Ceil => x.ceil(),
        Unary::Cos => libm::cos(x),
        Unary::Erf => libm::erf(x),
        Unary::Exp => libm::exp(x),
        Unary::Floor => x.floor(),
        Unary::Gelu => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Unary::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
            0.5 * x * (1.0 + libm::tanh(inner))
        }
        Unary::IsNan => flag(x.is_nan()),
        Unary::Log => libm::log(x),
        Unary::Not => flag(x == 0.0),
        Unary::Power(exponent) => libm::pow(x, f64::from(exponent)),
        Unary::Swish(slope) => x / (1.0 + libm::exp(-f64::from(slope) * x)),
        Unary::Reciprocal => 1.0 / x,
        Unary::Relu => x.max(0.0),
        Unary::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
        Unary::Sign if x == 0.0 || x.is_nan() => x,
        Unary::Sign => x.signum(),
        Unary::Sin => libm::sin(x),
        Unary::Sqrt => x.sqrt(),
        Unary::Square => x * x,
        Unary::Tanh => libm::tanh(x),
        Unary::Clamp { least, most } => x.max(f64::from(least)).min(f64::from(most)),
    }
}
