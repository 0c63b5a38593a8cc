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
    /// The gate of the feed-forward, if it has one. Where it is `intermediate`, that layer is both, the gate first.
    pub(super) gate: Option<String>,
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
        let [query_bias, key_bias, value_bias] = self.bias;
        let query = square(&names.query).bias(query_bias).apply(net, &normed)?;
        let key = square(&names.key).bias(key_bias).apply(net, &normed)?;
        let value = square(&names.value).bias(value_bias).apply(net, &normed)?;
        let context = attention(net, self.heads, (&query, &key, &value), scores);
        let scale = names.scales.as_ref();
        let attended = square(&names.attention_output).scaled(scale.map(|[scale, _]| scale));
        let attended = attended.apply(net, &context)?;
        let x = net.node("Add", &[&attended, x], vec![]);

        let normed = self.norm(net, &names.second_norm, &x)?;
        let fed = self.feed_forward(net, names, &normed)?;
        Ok(net.node("Add", &[&fed, &x], vec![]))
    }

    /// `output(activation(intermediate(x)))`, or `output(activation(gate(x)) * intermediate(x))`.
    pub(super) fn feed_forward(
        &self,
        net: &mut Net<'_>,
        names: &LayerNames,
        x: &str,
    ) -> Result<String> {
        let layer = |name: &str, parts| Linear::new(name, self.hidden, parts * self.intermediate);
        let whole = layer(&names.intermediate, 1);
        let (first, second) = match &names.gate {
            None => (whole, None),
            Some(gate) if *gate == names.intermediate => {
                let both = layer(gate, 2);
                (both.clone().group(0, 2), Some(both.group(1, 2)))
            }
            Some(gate) => (layer(gate, 1), Some(whole)),
        };
        let first = first.apply(net, x)?;
        let second = second.map(|wide| wide.apply(net, x)).transpose()?;
        let mut active = self.activation.apply(net, &first);
        if let Some(wide) = second {
            active = net.node("Mul", &[&wide, &active], vec![]);
        }
        let narrow = Linear::new(&names.output, self.intermediate, self.hidden);
        let scale = names.scales.as_ref();
        narrow
            .scaled(scale.map(|[_, scale]| scale))
            .apply(net, &active)
    }
}
