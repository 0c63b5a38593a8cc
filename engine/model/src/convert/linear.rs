//! `x W^T + b`, the way checkpoints store it: `W` is `[out, in]`.

use std::ops::Range;

use isovec_engine::error::Result;

use super::net::Net;

/// A linear layer that the checkpoint holds, or some of its outputs.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// Name of the module: its tensors are `{name}.weight` and `{name}.bias`.
    pub(super) name: String,
    /// The tensor of its weight, where that has another name.
    weight: Option<String>,
    /// Size of the input.
    pub(super) input: usize,
    /// Size of the output.
    pub(super) output: usize,
    /// Which outputs are wanted; several layers are often stored as one.
    pub(super) outputs: Range<usize>,
    /// Whether there is a bias.
    pub(super) bias: bool,
    /// A tensor `[out]` that the outputs are multiplied with.
    pub(super) scale: Option<String>,
}

impl Linear {
    /// A whole layer with a bias.
    pub(super) fn new(name: impl Into<String>, input: usize, output: usize) -> Self {
        Self {
            name: name.into(),
            weight: None,
            input,
            output,
            outputs: 0..output,
            bias: true,
            scale: None,
        }
    }

    /// With a bias or without.
    pub(super) fn bias(mut self, bias: bool) -> Self {
        self.bias = bias;
        self
    }

    /// With its weight in the tensor of this name.
    pub(super) fn stored_as(mut self, weight: String) -> Self {
        self.weight = Some(weight);
        self
    }

    /// All outputs times the numbers in a tensor, which are made a part of the weights: `(s W) x + s b`.
    pub(super) fn scaled(mut self, scale: Option<String>) -> Self {
        self.scale = scale;
        self
    }

    /// The `index`-th of `parts` equal groups of outputs.
    pub(super) fn group(mut self, index: usize, parts: usize) -> Self {
        let size = self.output / parts;
        self.outputs = index * size..(index + 1) * size;
        self
    }

    /// Applies the layer to `x`, whose last axis is the input.
    pub(super) fn apply(&self, net: &mut Net<'_>, x: &str) -> Result<String> {
        let weight = self.weight.clone();
        let weight = weight.unwrap_or_else(|| format!("{}.weight", self.name));
        let bias = format!("{}.bias", self.name);
        let shape = [self.output, self.input];
        let weight = match &self.scale {
            Some(scale) => net.scaled(&weight, &shape, scale)?,
            None => net.transposed(&weight, shape, self.outputs.clone())?,
        };
        let product = net.node("MatMul", &[x, &weight], vec![]);
        if !self.bias {
            return Ok(product);
        }
        let bias = match &self.scale {
            Some(scale) => net.scaled(&bias, &shape[..1], scale)?,
            None => net.part(&bias, self.output, self.outputs.clone())?,
        };
        Ok(net.node("Add", &[&product, &bias], vec![]))
    }
}
