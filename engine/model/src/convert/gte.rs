//! GTE's newer architecture (<https://arxiv.org/abs/2407.19669>), `model_type` `new` or `gte`: BERT with rotary positions and a gated
//! feed-forward. Its authors' code is <https://huggingface.co/Alibaba-NLP/new-impl>; transformers has the same with other names.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::{Scores, attention};
use super::bert;
use super::classifier::{add_to_bert, names};
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, TOKEN_TYPE_IDS, Table, declare_input, declare_output,
    sequence_length,
};
use super::encoder::Encoder;
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use super::rotary::{Places, Rotary};
use super::sight::Sight;
use super::wavelengths::Wavelengths;

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    for (key, known) in [
        ("position_embedding_type", "rope"),
        ("layer_norm_type", "layer_norm"),
    ] {
        let asked = config.text_or(key, known)?;
        if asked != known {
            return Err(config.unsupported(format!(
                "{key} in config.json is {asked:?}; for models of this family only {known:?} can be \
                 converted"
            )));
        }
    }
    config.refuse_flag(
        "logn_attention_scale",
        "attention scores grow with the length of the batch",
    )?;
    Activation::of(config, "hidden_act")?;
    waves(config)?;
    Ok(())
}

/// How positions turn. The ways to stretch that the authors' code and transformers have.
fn waves(config: &Config) -> Result<Wavelengths> {
    let default = match config.text_or("model_type", "")? {
        "new" => 10_000.0,
        _ => 160_000.0,
    };
    let base = config.positive_or("rope_theta", default)?;
    let scaling = config.part("rope_scaling")?;
    if scaling.text_or("type", "")? != "ntk" || config.value("rope_parameters").is_some() {
        return Wavelengths::of(config, Sight::Everything, base);
    }
    if scaling.value("mixed_b").is_some() {
        return Err(config.unsupported("rope_scaling in config.json sets mixed_b"));
    }
    let factor = scaling.positive("factor")?;
    if factor < 1.0 {
        return Err(scaling.wrong("factor", &format!("is {factor}, which shortens positions")));
    }
    Ok(Wavelengths::ntk(base, factor))
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let mut deciding = bert::deciding(config)?;
    deciding.push(("waves", waves(config)?.to_string()));
    deciding.push(("token types", (types(config)? > 0).to_string()));
    Ok(deciding)
}

fn types(config: &Config) -> Result<usize> {
    config.count_or("type_vocab_size", 1)
}

/// What is the same in every layer.
struct Layers {
    encoder: Encoder,
    parts: &'static Parts,
}

/// How a checkpoint calls the parts of a layer.
struct Parts {
    layers: &'static str,
    attention: &'static str,
    attention_norm: &'static str,
    feed_forward_norm: &'static str,
    /// Queries, keys and values in one, unless `pack_qkv` says no, and the two halves of the feed-forward's input.
    packed: bool,
}

/// The authors' names.
const PARTS: Parts = Parts {
    layers: "encoder.layer",
    attention: "attention",
    attention_norm: "attn_ln",
    feed_forward_norm: "mlp_ln",
    packed: true,
};

/// Those of transformers.
const NEWER_PARTS: Parts = Parts {
    layers: "layers",
    attention: "self_attn",
    attention_norm: "post_attention_layernorm",
    feed_forward_norm: "post_mlp_layernorm",
    packed: false,
};

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let encoder = bert::encoder(config)?;
    let hidden = encoder.hidden;
    let is_newer = net.holds("layers.0.post_attention_layernorm.weight");
    let parts = if is_newer { &NEWER_PARTS } else { &PARTS };
    let layers = Layers { encoder, parts };
    Rotary::check_heads(config, encoder.heads)?;
    let positions = Rotary::positions(config, "max_position_embeddings")?;
    let packed_heads = parts.packed && config.flag_or("pack_qkv", true)?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    let embedded = embeddings(config, net, hidden)?;
    let mut x = encoder.norm("embeddings.LayerNorm").apply(net, &embedded)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    let length = sequence_length(net);
    let places = Places::Row(positions);
    let rotary = Rotary::new(net, encoder.heads, waves(config)?, places, &length);
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: Some(&rotary),
    };
    for layer in 0..config.size("num_hidden_layers")? {
        let name = format!("{}.{layer}", parts.layers);
        net.scope(&name);
        x = layers.attend(net, &name, &x, scores, packed_heads)?;
        x = layers.feed_forward(net, &name, &x)?;
    }
    declare_output(net, hidden);
    let newer = "GteForSequenceClassification";
    let class = match names(config).contains(&newer) {
        true => newer,
        false => "NewForSequenceClassification",
    };
    add_to_bert(config, net, hidden, class)?;
    Ok(positions)
}

/// The words' vectors, and those of token types if there are any.
fn embeddings(config: &Config, net: &mut Net<'_>, hidden: usize) -> Result<String> {
    let types = types(config)?;
    if types > 1 {
        declare_input(net, TOKEN_TYPE_IDS);
    }
    net.scope("embeddings");
    let words = Table {
        name: "embeddings.word_embeddings",
        rows: config.size("vocab_size")?,
        size: hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let kinds = Table {
        name: "embeddings.token_type_embeddings",
        rows: types,
        size: hidden,
    };
    let kinds = match types {
        0 => return Ok(words),
        1 => kinds.row_zero(net)?,
        _ => kinds.lookup(net, TOKEN_TYPE_IDS)?,
    };
    Ok(net.node("Add", &[&words, &kinds], vec![]))
}

impl Layers {
    fn attend(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        x: &str,
        scores: Scores<'_>,
        packed: bool,
    ) -> Result<String> {
        let hidden = self.encoder.hidden;
        let name = |part: &str| format!("{layer}.{}.{part}", self.parts.attention);
        let project = |net: &mut Net<'_>, part: &str, index: usize| match packed {
            true => Linear::new(name("qkv_proj"), hidden, 3 * hidden)
                .group(index, 3)
                .apply(net, x),
            false => Linear::new(name(part), hidden, hidden).apply(net, x),
        };
        let query = project(net, "q_proj", 0)?;
        let key = project(net, "k_proj", 1)?;
        let value = project(net, "v_proj", 2)?;
        let context = attention(net, self.encoder.heads, (&query, &key, &value), scores);
        let last = Linear::new(name("o_proj"), hidden, hidden);
        let norm = format!("{layer}.{}", self.parts.attention_norm);
        self.encoder.added(net, x, (&last, &context), &norm)
    }

    fn feed_forward(&self, net: &mut Net<'_>, layer: &str, x: &str) -> Result<String> {
        let (hidden, wide) = (self.encoder.hidden, self.encoder.intermediate);
        let name = |part: &str| format!("{layer}.mlp.{part}");
        let project = |net: &mut Net<'_>, part: &str, index: usize| {
            let product = match self.parts.packed {
                true => Linear::new(name("up_gate_proj"), hidden, 2 * wide).group(index, 2),
                false => Linear::new(name(part), hidden, wide),
            };
            product.bias(false).apply(net, x)
        };
        let input = project(net, "up_proj", 0)?;
        let gate = project(net, "gate_proj", 1)?;
        let active = self.encoder.activation.apply(net, &gate);
        let gated = net.node("Mul", &[&active, &input], vec![]);
        let last = Linear::new(name("down_proj"), wide, hidden);
        let norm = format!("{layer}.{}", self.parts.feed_forward_norm);
        self.encoder.added(net, x, (&last, &gated), &norm)
    }
}
