//! Normalisation over the last axis: of layers (<https://arxiv.org/abs/1607.06450>), and by the root of the mean of squares
//! (<https://arxiv.org/abs/1910.07467>).

use isovec_engine::error::Result;

use super::net::Net;
use crate::onnx::builder::{float, int, ints};

/// A layer normalisation that the checkpoint holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerNorm<'a> {
    /// Name of the module.
    pub(super) name: &'a str,
    /// Size of the last axis.
    pub(super) size: usize,
    /// What is added to the variance.
    pub(super) epsilon: f64,
    /// Whether there is a bias.
    pub(super) bias: bool,
}

impl LayerNorm<'_> {
    /// Applies it to `x`.
    pub(super) fn apply(&self, net: &mut Net<'_>, x: &str) -> Result<String> {
        let scale = self.tensor(net, "weight", "gamma")?;
        let mut inputs = vec![x, &scale];
        let shift;
        if self.bias {
            shift = self.tensor(net, "bias", "beta")?;
            inputs.push(&shift);
        }
        let attributes = vec![int("axis", -1), float("epsilon", self.epsilon as f32)];
        Ok(net.node("LayerNormalization", &inputs, attributes))
    }

    /// Checkpoints that came from TensorFlow call the parameters gamma and beta.
    fn tensor(&self, net: &mut Net<'_>, name: &str, old_name: &str) -> Result<String> {
        let old = format!("{}.{old_name}", self.name);
        let new = format!("{}.{name}", self.name);
        let name = if net.holds(&old) && !net.holds(&new) {
            old
        } else {
            new
        };
        net.weight(&name, &[self.size])
    }
}

/// A normalisation `x / sqrt(mean of squares + epsilon) weight` that the checkpoint holds, or one with `1 + weight`.
#[derive(Debug, Clone, Copy)]
pub(super) struct RmsNorm<'a> {
    /// Name of the module.
    pub(super) name: &'a str,
    /// Size of the last axis.
    pub(super) size: usize,
    /// What is added to the mean.
    pub(super) epsilon: f64,
    /// Whether 1 is added to the weight.
    pub(super) plus_one: bool,
}

impl RmsNorm<'_> {
    /// Applies it to `x`, in the form that runtimes recognise and run as one operator.
    pub(super) fn apply(&self, net: &mut Net<'_>, x: &str) -> Result<String> {
        let name = format!("{}.weight", self.name);
        let weight = match self.plus_one {
            true => net.plus_one(&name, &[self.size])?,
            false => net.weight(&name, &[self.size])?,
        };
        let two = net.builder().f32(2.0);
        let epsilon = net.builder().f32(self.epsilon as f32);
        let squares = net.node("Pow", &[x, &two], vec![]);
        let last = vec![ints("axes", &[-1]), int("keepdims", 1)];
        let mean = net.node("ReduceMean", &[&squares], last);
        let mean = net.node("Add", &[&mean, &epsilon], vec![]);
        let root = net.node("Sqrt", &[&mean], vec![]);
        let normed = net.node("Div", &[x, &root], vec![]);
        Ok(net.node("Mul", &[&normed, &weight], vec![]))
    }
}
