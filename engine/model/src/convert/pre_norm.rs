//! Encoders whose layers normalise before each part: those of pictures, and CLIP's of texts.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attention};
use super::linear::Linear;
use super::net::Net;
use super::norm::LayerNorm;

/// What is the same in every layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layers {
    pub(super) hidden: usize,
    pub(super) intermediate: usize,
    pub(super) heads: Heads,
    pub(super) activation: Activation,
    pub(super) epsilon: f64,
    /// Whether queries, keys and values have a bias, each.
    pub(super) bias: [bool; 3],
}

/// Names of the modules of a layer, behind that of the layer.
#[derive(Debug)]
pub(super) struct LayerNames {
    pub(super) norm: &'static str,
    pub(super) query: &'static str,
    pub(super) key: &'static str,
    pub(super) value: &'static str,
    pub(super) attention_output: &'static str,
    pub(super) second_norm: &'static str,
    pub(super) intermediate: &'static str,
    /// The gate of the feed-forward, if it has one. Where it is `intermediate`, that layer is both, the gate first.
    pub(super) gate: Option<&'static str>,
    pub(super) output: &'static str,
    /// Tensors that the outputs of attention and of the feed-forward are multiplied with, where there are any
    /// (LayerScale, <https://arxiv.org/abs/2103.17239>).
    pub(super) scales: Option<[&'static str; 2]>,
}

impl Layers {
    /// What decides vectors and no tensor shows.
    pub(super) fn deciding(&self, layers: usize) -> Deciding {
        vec![
            ("heads", self.heads.count.to_string()),
            ("layers", layers.to_string()),
            ("activation", format!("{:?}", self.activation)),
            ("epsilon", number(self.epsilon)),
        ]
    }

    /// A normalisation of this encoder.
    pub(super) fn norm(&self, net: &mut Net<'_>, name: &str, x: &str) -> Result<String> {
        LayerNorm {
            name,
            size: self.hidden,
            epsilon: self.epsilon,
            bias: true,
        }
        .apply(net, x)
    }

    /// Layers `{name}.0`, `{name}.1`, ...
    pub(super) fn stack(
        &self,
        net: &mut Net<'_>,
        (name, count): (&str, usize),
        names: &LayerNames,
        mut x: String,
        scores: Scores<'_>,
    ) -> Result<String> {
        for layer in 0..count {
            let name = format!("{name}.{layer}");
            net.scope(&name);
            x = self.layer(net, &name, names, &x, scores)?;
        }
        Ok(x)
    }

    /// `x + attention(norm(x))`, then `y + feed_forward(norm(y))`.
    fn layer(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        names: &LayerNames,
        x: &str,
        scores: Scores<'_>,
    ) -> Result<String> {
        let square = |name: &str| Linear::new(within(layer, name), self.hidden, self.hidden);
        let normed = self.norm(net, &within(layer, names.norm), x)?;
        let project =
            |net: &mut Net<'_>, name: &str, bias: bool| square(name).bias(bias).apply(net, &normed);
        let query = project(net, names.query, self.bias[0])?;
        let key = project(net, names.key, self.bias[1])?;
        let value = project(net, names.value, self.bias[2])?;
        let context = attention(net, self.heads, (&query, &key, &value), scores);
        let scale = names.scales.map(|[scale, _]| within(layer, scale));
        let attended = square(names.attention_output).scaled(scale);
        let attended = attended.apply(net, &context)?;
        let x = net.node("Add", &[&attended, x], vec![]);

        let normed = self.norm(net, &within(layer, names.second_norm), &x)?;
        let fed = self.feed_forward(net, layer, names, &normed)?;
        Ok(net.node("Add", &[&fed, &x], vec![]))
    }

    /// `output(activation(intermediate(x)))`, or `output(activation(gate(x)) * intermediate(x))`.
    pub(super) fn feed_forward(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        names: &LayerNames,
        x: &str,
    ) -> Result<String> {
        let linear = |name: &str, parts| {
            Linear::new(within(layer, name), self.hidden, parts * self.intermediate)
        };
        let (first, second) = match names.gate {
            None => (linear(names.intermediate, 1), None),
            Some(gate) if gate == names.intermediate => {
                let both = linear(gate, 2);
                (both.clone().group(0, 2), Some(both.group(1, 2)))
            }
            Some(gate) => (linear(gate, 1), Some(linear(names.intermediate, 1))),
        };
        let first = first.apply(net, x)?;
        let second = second.map(|wide| wide.apply(net, x)).transpose()?;
        let mut active = self.activation.apply(net, &first);
        if let Some(wide) = second {
            active = net.node("Mul", &[&wide, &active], vec![]);
        }
        let output = within(layer, names.output);
        let scale = names.scales.map(|[_, scale]| within(layer, scale));
        Linear::new(output, self.intermediate, self.hidden)
            .scaled(scale)
            .apply(net, &active)
    }
}

fn within(layer: &str, module: &str) -> String {
    format!("{layer}.{module}")
}
