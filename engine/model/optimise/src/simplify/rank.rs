//! How many axes a value has, where the graph says so.

use super::net::Net;

/// Nodes that are looked through at most.
const FAR: usize = 64;

/// Operators whose output has the axes of their first input.
const LIKE_FIRST: [&str; 34] = [
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "MaxPool",
    "Neg",
    "Pad",
    "Relu",
    "Resize",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Softplus",
    "Sqrt",
    "Tanh",
    "Tile",
];

impl Net<'_> {
    /// The number of a value's axes.
    pub(super) fn rank(&self, value: &str) -> Option<usize> {
        self.rank_within(value, FAR)
    }

    fn rank_within(&self, value: &str, left: usize) -> Option<usize> {
        if let Some(held) = self.constant(value) {
            return Some(held.shape().len());
        }
        if let Some(rank) = self.input_rank(value) {
            return Some(rank);
        }
        let left = left.checked_sub(1)?;
        let at = self.maker(value)?;
        let node = &self.nodes()[at];
        let of = |input: usize| self.rank_within(node.input.get(input)?, left);
        let axes = |input: usize| Some(self.asked(node, "axes", input)?.len());
        match self.operator(at) {
            "Transpose" => Some(node.ints("perm")?.len()),
            "Reshape" => Some(self.value(node.input.get(1)?)?.numbers.len()),
            "Unsqueeze" => Some(of(0)? + axes(1)?),
            "Squeeze" => of(0)?.checked_sub(axes(1)?),
            "Add" | "Sub" | "Mul" | "Div" | "Pow" => Some(of(0)?.max(of(1)?)),
            // One axis is no matrix.
            "MatMul" => Some(of(0)?.max(of(1)?)).filter(|&rank| rank > 1),
            operator if LIKE_FIRST.contains(&operator) => of(0),
            operator
                if operator.starts_with("Reduce") && node.int("keepdims").unwrap_or(1) != 0 =>
            {
                of(0)
            }
            _ => None,
        }
    }
}
