//! The encoder of T5 (<https://arxiv.org/abs/1910.10683>), `model_type` `t5`: normalisation by the root of the mean of squares before
//! each part, a bias by relative position that all layers share, scores that are not scaled, and no bias in any product; with a gated
//! feed-forward in version 1.1 (<https://arxiv.org/abs/2002.05202>). Names of tensors and of options are those of
//! <https://huggingface.co/docs/transformers/model_doc/t5>.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attend, split};
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, declare_input, declare_output, sequence_length,
};
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use super::norm::RmsNorm;
use super::relative::{Buckets, relative_bias};

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "encoder.final_layer_norm.weight";

/// The table of words: the decoder has it too, if the checkpoint holds one.
const WORDS: [&str; 2] = ["shared", "encoder.embed_tokens"];

/// The longest sequence that a table of distances is made for; a longer one would be a mistake in `config.json`.
const MAX_POSITIONS: usize = 1 << 17;

/// The most numbers that all heads of a token have together: more than those of any model.
const MOST_COLUMNS: usize = 1 << 24;

/// A model as its config describes it.
struct T5 {
    hidden: usize,
    wide: usize,
    heads: Heads,
    layers: usize,
    buckets: Buckets,
    positions: usize,
    activation: Activation,
    /// Whether the feed-forward is gated.
    gated: bool,
    epsilon: f64,
}

impl T5 {
    fn of(config: &Config) -> Result<Self> {
        config.refuse_flag("is_decoder", "a decoder sees only the tokens before it")?;
        let count = config.size("num_heads")?;
        let size = config.size("d_kv")?;
        if count.checked_mul(size).is_none_or(|all| all > MOST_COLUMNS) {
            return Err(config.wrong(
                "d_kv",
                &format!("is {size}, too many numbers for {count} heads"),
            ));
        }
        let positions = config.size_or("n_positions", 512)?;
        if positions > MAX_POSITIONS {
            return Err(config.unsupported(format!(
                "n_positions in config.json is {positions}; the table of distances is made for up \
                 to {MAX_POSITIONS}"
            )));
        }
        let (gated, activation) = match config.text_or("feed_forward_proj", "relu")? {
            "relu" => (false, Activation::Relu),
            // The name means the approximation, whatever it says (transformers, `T5Config`).
            "gated-gelu" => (true, Activation::GeluTanh),
            other => {
                return Err(config.unsupported(format!(
                    "feed_forward_proj in config.json is {other:?}; relu and gated-gelu can be \
                     converted"
                )));
            }
        };
        let buckets = Buckets {
            count: config.size_or("relative_attention_num_buckets", 32)?,
            furthest: config.size_or("relative_attention_max_distance", 128)?,
        };
        if !buckets.are_usable() {
            return Err(config.unsupported(format!(
                "config.json asks for {} buckets of distances up to {}",
                buckets.count, buckets.furthest
            )));
        }
        Ok(Self {
            hidden: config.size("d_model")?,
            wide: config.size("d_ff")?,
            heads: Heads { count, size },
            layers: config.size("num_layers")?,
            buckets,
            positions,
            activation,
            gated,
            epsilon: config.positive_or("layer_norm_epsilon", 1e-6)?,
        })
    }

    fn norm(&self, net: &mut Net<'_>, name: &str, x: &str) -> Result<String> {
        RmsNorm {
            name,
            size: self.hidden,
            epsilon: self.epsilon,
            plus_one: false,
        }
        .apply(net, x)
    }

    fn attend(
        &self,
        net: &mut Net<'_>,
        block: &str,
        x: &str,
        scores: Scores<'_>,
    ) -> Result<String> {
        let all = self.heads.width();
        let normed = self.norm(net, &format!("{block}.layer.0.layer_norm"), x)?;
        let name = |part: &str| format!("{block}.layer.0.SelfAttention.{part}");
        let project = |net: &mut Net<'_>, part: &str| -> Result<String> {
            let product = Linear::new(name(part), self.hidden, all).bias(false);
            let product = product.apply(net, &normed)?;
            Ok(split(net, self.heads, &product))
        };
        let parts = (project(net, "q")?, project(net, "k")?, project(net, "v")?);
        let context = attend(net, self.heads, self.heads, parts, scores);
        let last = Linear::new(name("o"), all, self.hidden).bias(false);
        let made = last.apply(net, &context)?;
        Ok(net.node("Add", &[&made, x], vec![]))
    }

    fn feed_forward(&self, net: &mut Net<'_>, block: &str, x: &str) -> Result<String> {
        let normed = self.norm(net, &format!("{block}.layer.1.layer_norm"), x)?;
        let product = |net: &mut Net<'_>, part: &str, [input, output]: [usize; 2], x: &str| {
            let name = format!("{block}.layer.1.DenseReluDense.{part}");
            Linear::new(name, input, output).bias(false).apply(net, x)
        };
        let widen = [self.hidden, self.wide];
        let wide = product(net, if self.gated { "wi_0" } else { "wi" }, widen, &normed)?;
        let mut active = self.activation.apply(net, &wide);
        if self.gated {
            let input = product(net, "wi_1", widen, &normed)?;
            active = net.node("Mul", &[&active, &input], vec![]);
        }
        let made = product(net, "wo", [self.wide, self.hidden], &active)?;
        Ok(net.node("Add", &[&made, x], vec![]))
    }
}

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    T5::of(config).map(drop)
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let model = T5::of(config)?;
    Ok(vec![
        ("heads", model.heads.count.to_string()),
        ("layers", model.layers.to_string()),
        ("activation", format!("{:?}", model.activation)),
        ("buckets", format!("{:?}", model.buckets)),
        ("epsilon", number(model.epsilon)),
    ])
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let model = T5::of(config)?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    net.scope("embeddings");
    let [own, other] = WORDS;
    let mut x = Table {
        name: match net.holds(&format!("{own}.weight")) {
            false if net.holds(&format!("{other}.weight")) => other,
            _ => own,
        },
        rows: config.size("vocab_size")?,
        size: model.hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    net.scope("encoder");
    let length = sequence_length(net);
    let table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    let (buckets, positions) = (model.buckets, model.positions);
    let bias = relative_bias(net, model.heads, table, (buckets, positions), &length)?;
    let scores = Scores {
        mask: Some(&mask),
        bias: Some(&bias),
        rotary: None,
    };
    for layer in 0..model.layers {
        let block = format!("encoder.block.{layer}");
        net.scope(&block);
        x = model.attend(net, &block, &x, scores)?;
        x = model.feed_forward(net, &block, &x)?;
    }
    net.scope("encoder.final_layer_norm");
    model.norm(net, "encoder.final_layer_norm", &x)?;
    declare_output(net, model.hidden);
    Ok(model.positions)
}
