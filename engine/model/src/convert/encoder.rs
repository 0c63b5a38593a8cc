//! One layer of an encoder that normalises after each residual sum, as BERT does
//! (<https://arxiv.org/abs/1810.04805>): attention, feed-forward, each followed by
//! `norm(x + f(x))`. BERT, RoBERTa, MPNet and DistilBERT differ in names alone. GTE and JinaBERT have
//! gated layers, which end in the same way.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::attention::{Heads, Scores, attention};
use super::linear::Linear;
use super::net::Net;
use super::norm::LayerNorm;

/// What is the same in every layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoder {
    /// Size of a token's vector.
    pub(super) hidden: usize,
    /// Size between the two feed-forward layers.
    pub(super) intermediate: usize,
    /// The attention's heads.
    pub(super) heads: Heads,
    /// Between the two feed-forward layers.
    pub(super) activation: Activation,
    /// Of every normalisation.
    pub(super) epsilon: f64,
}

/// Names of one layer's modules.
#[derive(Debug)]
pub(super) struct LayerNames {
    pub(super) query: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) attention_output: String,
    pub(super) attention_norm: String,
    pub(super) intermediate: String,
    pub(super) output: String,
    pub(super) output_norm: String,
}

impl Encoder {
    /// Applies one layer to `x`, `[batch, sequence, hidden]`.
    pub(super) fn layer(
        &self,
        net: &mut Net<'_>,
        names: &LayerNames,
        x: &str,
        scores: Scores<'_>,
    ) -> Result<String> {
        let square = |name: &str| Linear::new(name, self.hidden, self.hidden);
        let query = square(&names.query).apply(net, x)?;
        let key = square(&names.key).apply(net, x)?;
        let value = square(&names.value).apply(net, x)?;
        let context = attention(net, self.heads, (&query, &key, &value), scores);
        let last = square(&names.attention_output);
        let x = self.added(net, x, (&last, &context), &names.attention_norm)?;
        let names = [&*names.intermediate, &names.output, &names.output_norm];
        self.feed_forward(net, &x, names)
    }

    /// The feed-forward of a layer; `names` of its two products and of its norm.
    pub(super) fn feed_forward(
        &self,
        net: &mut Net<'_>,
        x: &str,
        [intermediate, output, norm]: [&str; 3],
    ) -> Result<String> {
        let wide = Linear::new(intermediate, self.hidden, self.intermediate);
        let wide = wide.apply(net, x)?;
        let active = self.activation.apply(net, &wide);
        let last = Linear::new(output, self.intermediate, self.hidden);
        self.added(net, x, (&last, &active), norm)
    }

    /// `norm(x + last(y))`: how attention and the feed-forward end.
    pub(super) fn added(
        &self,
        net: &mut Net<'_>,
        x: &str,
        (last, y): (&Linear, &str),
        norm: &str,
    ) -> Result<String> {
        let made = last.apply(net, y)?;
        let sum = net.node("Add", &[&made, x], vec![]);
        self.norm(norm).apply(net, &sum)
    }

    /// A normalisation of this encoder.
    pub(super) fn norm<'a>(&self, name: &'a str) -> LayerNorm<'a> {
        LayerNorm {
            name,
            size: self.hidden,
            epsilon: self.epsilon,
            bias: true,
        }
    }
}
