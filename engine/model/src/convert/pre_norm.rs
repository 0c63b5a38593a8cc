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
    /// Whether queries, keys and values have a bias.
    pub(super) bias: bool,
}

/// Names of the modules of a layer.
#[derive(Debug, Default)]
pub(super) struct LayerNames {
    pub(super) norm: String,
    pub(super) query: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) attention_output: String,
    pub(super) second_norm: String,
    pub(super) intermediate: String,
    /// Whether the feed-forward has a gate: it is the first half of `intermediate`.
    pub(super) gated: bool,
    pub(super) output: String,
    /// Tensors that the outputs of attention and of the feed-forward are multiplied with, where there are any
    /// (LayerScale, <https://arxiv.org/abs/2103.17239>).
    pub(super) scales: Option<[String; 2]>,
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

    /// `x + attention(norm(x))`, then `y + feed_forward(norm(y))`.
    pub(super) fn layer(
        &self,
        net: &mut Net<'_>,
        names: &LayerNames,
        x: &str,
        scores: Scores<'_>,
    ) -> Result<String> {
        let square = |name: &str| Linear::new(name, self.hidden, self.hidden);
        let normed = self.norm(net, &names.norm, x)?;
        let query = square(&names.query).bias(self.bias).apply(net, &normed)?;
        let key = square(&names.key).bias(self.bias).apply(net, &normed)?;
        let value = square(&names.value).bias(self.bias).apply(net, &normed)?;
        let context = attention(net, self.heads, (&query, &key, &value), scores);
        let scale = names.scales.as_ref();
        let attended = square(&names.attention_output).scaled(scale.map(|[scale, _]| scale));
        let attended = attended.apply(net, &context)?;
        let x = net.node("Add", &[&attended, x], vec![]);

        let normed = self.norm(net, &names.second_norm, &x)?;
        let fed = self.feed_forward(net, names, &normed)?;
        Ok(net.node("Add", &[&fed, &x], vec![]))
    }

    /// `output(activation(intermediate(x)))`, or `output(activation(a) * b)` of both halves of `intermediate(x)`.
    pub(super) fn feed_forward(
        &self,
        net: &mut Net<'_>,
        names: &LayerNames,
        x: &str,
    ) -> Result<String> {
        let layer =
            |parts| Linear::new(&names.intermediate, self.hidden, parts * self.intermediate);
        let active = if names.gated {
            let gate = layer(2).group(0, 2).apply(net, x)?;
            let wide = layer(2).group(1, 2).apply(net, x)?;
            let gate = self.activation.apply(net, &gate);
            net.node("Mul", &[&wide, &gate], vec![])
        } else {
            let wide = layer(1).apply(net, x)?;
            self.activation.apply(net, &wide)
        };
        let narrow = Linear::new(&names.output, self.intermediate, self.hidden);
        let scale = names.scales.as_ref();
        narrow
            .scaled(scale.map(|[_, scale]| scale))
            .apply(net, &active)
    }
}
