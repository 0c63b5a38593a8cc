//! Functions of one and two numbers, as WGSL.

use isovec_encoder::program::{Binary, Unary};

use crate::constants::Constants;

/// A number: WGSL has no way to write what is not finite.
pub(super) fn number(x: f32, constants: &mut Constants) -> String {
    if x.is_finite() {
        format!("{x:?}f")
    } else {
        format!("constants[{}u]", constants.add(&[x]))
    }
}

/// `f(x)`.
pub(super) fn unary(f: Unary, x: &str, constants: &mut Constants) -> String {
    match f {
        Unary::Affine { factor, shift } => {
            let (factor, shift) = (number(factor, constants), number(shift, constants));
            format!("({factor} * {x} + {shift})")
        }
        Unary::Abs => format!("abs({x})"),
        Unary::Acos => format!("arccosine({x})"),
        Unary::Acosh => format!("acosh({x})"),
        Unary::Asin => format!("arcsine({x})"),
        Unary::Asinh => format!("asinh({x})"),
        Unary::Atan => format!("arctangent({x})"),
        Unary::Atanh => format!("atanh({x})"),
        Unary::Ceil => format!("ceil({x})"),
        Unary::Cos => format!("cos({x})"),
        Unary::Erf => format!("erf({x})"),
        Unary::Exp => format!("exp({x})"),
        Unary::Floor => format!("floor({x})"),
        Unary::Gelu => format!("gelu({x})"),
        Unary::GeluTanh => format!("gelu_tanh({x})"),
        Unary::IsNan => format!("flag(is_nan({x}))"),
        Unary::Log => format!("log({x})"),
        Unary::Not => format!("flag({x} == 0.0f)"),
        Unary::Power(exponent) => {
            let exponent = number(exponent, constants);
            format!("power({x}, {exponent}, not_a_number())")
        }
        Unary::Swish(slope) => format!("swish({x}, {})", number(slope, constants)),
        Unary::Reciprocal => format!("(1.0f / {x})"),
        Unary::Relu => format!("relu({x})"),
        Unary::Sigmoid => format!("sigmoid({x})"),
        Unary::Sign => format!("sign({x})"),
        Unary::Sin => format!("sin({x})"),
        Unary::Sqrt => format!("sqrt({x})"),
        Unary::Square => format!("square({x})"),
        Unary::Tanh => format!("hyperbolic_tangent({x})"),
        Unary::Clamp { least, most } => {
            let (least, most) = (number(least, constants), number(most, constants));
            format!("between({x}, {least}, {most})")
        }
    }
}

/// `f(a, b)`.
pub(super) fn binary(f: Binary, a: &str, b: &str) -> String {
    match f {
        Binary::Add => format!("({a} + {b})"),
        Binary::And => format!("flag({a} != 0.0f && {b} != 0.0f)"),
        Binary::Div => format!("({a} / {b})"),
        Binary::DivWhole => format!("trunc({a} / {b})"),
        Binary::Equal => format!("flag({a} == {b})"),
        Binary::Greater => format!("flag({a} > {b})"),
        Binary::GreaterOrEqual => format!("flag({a} >= {b})"),
        Binary::Less => format!("flag({a} < {b})"),
        Binary::LessOrEqual => format!("flag({a} <= {b})"),
        Binary::Max => format!("larger({a}, {b})"),
        Binary::Min => format!("smaller({a}, {b})"),
        Binary::Modulo => format!("modulo({a}, {b})"),
        Binary::Mul => format!("({a} * {b})"),
        Binary::Or => format!("flag({a} != 0.0f || {b} != 0.0f)"),
        Binary::Power => format!("power({a}, {b}, not_a_number())"),
        Binary::Remainder => format!("({a} % {b})"),
        Binary::Sub => format!("({a} - {b})"),
    }
}
