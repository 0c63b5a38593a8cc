//! What operators of the ONNX standard do to where values are (<https://onnx.ai/onnx/operators/>).

/// Operators that compute each value of their first input by itself; what else they read are numbers for all of them.
const ALONE: [&str; 21] = [
    "Abs",
    "Cast",
    "Clip",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tanh",
];

/// Operators that compute a value of two in the same place, of which one may be spread.
const PAIRS: [&str; 4] = ["Add", "Div", "Mul", "Sub"];

/// Operators that leave one pixel.
const SQUEEZES: [&str; 3] = ["GlobalAveragePool", "GlobalMaxPool", "ReduceMean"];

/// Whether an operator computes each value of its first input by itself.
pub(crate) fn goes_alone(operator: &str) -> bool {
    ALONE.contains(&operator)
}

/// Whether an operator computes each value of two in the same place.
pub(crate) fn goes_in_pairs(operator: &str) -> bool {
    PAIRS.contains(&operator)
}

/// Whether an operator leaves one pixel.
pub(crate) fn squeezes(operator: &str) -> bool {
    SQUEEZES.contains(&operator)
}
