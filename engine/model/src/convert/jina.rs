//! JinaBERT (<https://arxiv.org/abs/2310.19923>), `model_type` `bert` with `position_embedding_type` `alibi`: BERT with a bias by the
//! distance of tokens in place of positions, and a gated feed-forward.
//!
//! Its authors have two versions of the code: <https://huggingface.co/jinaai/jina-bert-implementation>, and
//! <https://huggingface.co/jinaai/jina-bert-v2-qk-post-norm> for the model of program code, which normalises queries and keys and once
//! more after the attention, and swaps the halves of the feed-forward. A checkpoint's tensors show which one it is for.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::alibi::alibi_bias;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attention};
use super::classifier::add_to_bert;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, TOKEN_TYPE_IDS, Table, declare_input, declare_output,
    sequence_length,
};
use super::encoder::Encoder;
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;

/// The longest sequence that a table of distances is made for; a longer one would be a mistake in `config.json`.
const MAX_POSITIONS: usize = 1 << 17;

/// Tensors that only checkpoints for the second version of the code hold.
const SECOND: [&str; 2] = [
    "encoder.layer.0.mlp.up_gated_layer.weight",
    "encoder.layer.0.attention.self.layer_norm_q.weight",
];

/// Whether the config of a BERT is one of this family.
pub(super) fn has_slopes(config: &Config) -> Result<bool> {
    Ok(config.text_or("position_embedding_type", "absolute")? == "alibi")
}

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    config.refuse_flag("is_decoder", "a decoder sees only the tokens before it")?;
    config.refuse_flag("add_cross_attention", "the model reads a second sequence")?;
    gate(config)?;
    Ok(())
}

/// The function on the gate of the feed-forward.
fn gate(config: &Config) -> Result<Activation> {
    match config.text_or("feed_forward_type", "original")? {
        "geglu" => Ok(Activation::Gelu),
        "reglu" => Ok(Activation::Relu),
        other => Err(config.unsupported(format!(
            "position_embedding_type in config.json is \"alibi\" and feed_forward_type {other:?}; \
             with such positions geglu and reglu can be converted"
        ))),
    }
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    Ok(vec![
        ("heads", config.size("num_attention_heads")?.to_string()),
        ("layers", config.size("num_hidden_layers")?.to_string()),
        ("gate", format!("{:?}", gate(config)?)),
        ("epsilon", number(epsilon(config)?)),
    ])
}

fn epsilon(config: &Config) -> Result<f64> {
    config.positive_or("layer_norm_eps", 1e-12)
}

/// What is the same in every layer.
struct Layers {
    /// Its activation is that of the gate.
    encoder: Encoder,
    /// Whether the checkpoint is for the second version of the code.
    is_second: bool,
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let hidden = config.size("hidden_size")?;
    let encoder = Encoder {
        hidden,
        intermediate: config.size("intermediate_size")?,
        heads: Heads::of(config, "num_attention_heads", hidden)?,
        activation: gate(config)?,
        epsilon: epsilon(config)?,
    };
    let is_second = SECOND.iter().any(|name| net.holds(name));
    let layers = Layers { encoder, is_second };
    let positions = config.size("max_position_embeddings")?;
    if positions > MAX_POSITIONS {
        return Err(config.unsupported(format!(
            "max_position_embeddings in config.json is {positions}; the table of distances is made \
             for up to {MAX_POSITIONS}"
        )));
    }
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    declare_input(net, TOKEN_TYPE_IDS);

    net.scope("embeddings");
    let words = Table {
        name: "embeddings.word_embeddings",
        rows: config.size("vocab_size")?,
        size: hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let types = Table {
        name: "embeddings.token_type_embeddings",
        rows: config.size_or("type_vocab_size", 2)?,
        size: hidden,
    }
    .lookup(net, TOKEN_TYPE_IDS)?;
    let sum = net.node("Add", &[&words, &types], vec![]);
    let mut x = encoder.norm("embeddings.LayerNorm").apply(net, &sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);

    net.scope("encoder");
    let length = sequence_length(net);
    let bias = alibi_bias(net, encoder.heads, positions, &length);
    let scores = Scores {
        mask: Some(&mask),
        bias: Some(&bias),
        rotary: None,
    };
    for layer in 0..config.size("num_hidden_layers")? {
        let name = format!("encoder.layer.{layer}");
        net.scope(&name);
        x = layers.attend(net, &name, &x, scores)?;
        x = layers.feed_forward(net, &name, &x)?;
    }
    declare_output(net, hidden);
    add_to_bert(config, net, hidden, "JinaBertForSequenceClassification")?;
    Ok(positions)
}

impl Layers {
    fn attend(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        x: &str,
        scores: Scores<'_>,
    ) -> Result<String> {
        let (encoder, hidden) = (&self.encoder, self.encoder.hidden);
        let name = |part: &str| format!("{layer}.attention.{part}");
        let project =
            |net: &mut Net<'_>, part: &str| Linear::new(name(part), hidden, hidden).apply(net, x);
        let mut query = project(net, "self.query")?;
        let mut key = project(net, "self.key")?;
        let value = project(net, "self.value")?;
        if self.is_second {
            // All heads together.
            let norm =
                |net: &mut Net<'_>, part: &str, x: &str| encoder.norm(&name(part)).apply(net, x);
            query = norm(net, "self.layer_norm_q", &query)?;
            key = norm(net, "self.layer_norm_k", &key)?;
        }
        let context = attention(net, encoder.heads, (&query, &key, &value), scores);
        let last = Linear::new(name("output.dense"), hidden, hidden);
        let attended = encoder.added(net, x, (&last, &context), &name("output.LayerNorm"))?;
        if !self.is_second {
            return Ok(attended);
        }
        let sum = net.node("Add", &[&attended, x], vec![]);
        let norm = format!("{layer}.layer_norm_1");
        encoder.norm(&norm).apply(net, &sum)
    }

    fn feed_forward(&self, net: &mut Net<'_>, layer: &str, x: &str) -> Result<String> {
        // Which half of the outputs is the gate.
        let (packed, gate, narrow, norm) = match self.is_second {
            true => ("mlp.up_gated_layer", 1, "mlp.down_layer", "layer_norm_2"),
            false => ("mlp.gated_layers", 0, "mlp.wo", "mlp.layernorm"),
        };
        let encoder = &self.encoder;
        let name = |part: &str| format!("{layer}.{part}");
        let (hidden, wide) = (encoder.hidden, encoder.intermediate);
        let packed = Linear::new(name(packed), hidden, 2 * wide).bias(false);
        let input = packed.clone().group(1 - gate, 2).apply(net, x)?;
        let gating = packed.group(gate, 2).apply(net, x)?;
        let active = encoder.activation.apply(net, &gating);
        let gated = net.node("Mul", &[&active, &input], vec![]);
        let last = Linear::new(name(narrow), wide, hidden);
        encoder.added(net, x, (&last, &gated), &name(norm))
    }
}
