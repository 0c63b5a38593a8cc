//! Qwen3 (<https://arxiv.org/abs/2505.09388>), a decoder whose last token's vector stands for the text: each token sees itself and
//! those before it; root mean squares normalise before each part, and each head of queries and keys; several heads of queries share
//! one of keys and values (<https://arxiv.org/abs/2305.13245>); positions are rotary, the feed-forward is gated.

use isovec_engine::error::Result;
use serde_json::Value;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attend, split};
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, declare_input, declare_output, sequence_length,
};
use super::linear::Linear;
use super::mask::{causal_mask, padding_mask};
use super::net::Net;
use super::norm::RmsNorm;
use super::rotary::{Places, Rotary};
use super::source::Recipe;

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "embed_tokens.weight";

/// The size of a head where `config.json` does not say it, as in transformers.
const HEAD_SIZE: usize = 128;

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    if config.value("rope_scaling").is_some() {
        return Err(config.unsupported("config.json sets rope_scaling: positions are rescaled"));
    }
    config.refuse_flag("use_sliding_window", "some layers see a window of tokens")?;
    let layers = config.value("layer_types").and_then(Value::as_array);
    let mut layers = layers.into_iter().flatten();
    if let Some(other) = layers.find(|layer| *layer != "full_attention") {
        return Err(config.unsupported(format!(
            "layer_types in config.json has {other}; only \"full_attention\" can be converted"
        )));
    }
    activation(config)?;
    theta(config)?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let (queries, keys) = heads(config)?;
    Ok(vec![
        ("heads", queries.count.to_string()),
        ("heads of keys", keys.count.to_string()),
        ("size of a head", queries.size.to_string()),
        ("layers", config.size("num_hidden_layers")?.to_string()),
        ("activation", format!("{:?}", activation(config)?)),
        ("epsilon", number(epsilon(config)?)),
        ("theta", number(theta(config)?)),
        ("attention_bias", attention_bias(config)?.to_string()),
        ("causal", is_causal(config)?.to_string()),
    ])
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let hidden = config.size("hidden_size")?;
    let wide = config.size("intermediate_size")?;
    let (queries, keys) = heads(config)?;
    Rotary::check_heads(config, queries)?;
    let activation = activation(config)?;
    let bias = attention_bias(config)?;
    let epsilon = epsilon(config)?;
    let positions = Rotary::positions(config, "max_position_embeddings")?;
    let norm = |net: &mut Net<'_>, name: &str, size: usize, x: &str| {
        RmsNorm {
            name,
            size,
            epsilon,
        }
        .apply(net, x)
    };
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);

    net.scope("embeddings");
    let length = sequence_length(net);
    let mut x = Table {
        name: "embed_tokens",
        rows: config.size("vocab_size")?,
        size: hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let mut mask = padding_mask(net, ATTENTION_MASK);
    if is_causal(config)? {
        let counting = net.recipe(
            "positions".into(),
            vec![positions],
            Recipe::CountF32(positions),
        );
        let counting = net.rows(&counting, &length);
        mask = causal_mask(net, &mask, &counting);
    }
    let places = Places::Row(positions);
    let rotary = Rotary::new(net, queries, theta(config)?, places, &length);
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: Some(&rotary),
    };
    let scale = net
        .builder()
        .f32((1.0 / (queries.size as f64).sqrt()) as f32);
    for layer in 0..config.size("num_hidden_layers")? {
        let name = format!("layers.{layer}");
        net.scope(&name);
        let normed = norm(net, &format!("{name}.input_layernorm"), hidden, &x)?;
        let project = |net: &mut Net<'_>, part: &str, heads: Heads| -> Result<String> {
            let projected = Linear::new(format!("{name}.self_attn.{part}"), hidden, heads.width());
            let projected = projected.bias(bias).apply(net, &normed)?;
            Ok(split(net, heads, &projected))
        };
        let query = project(net, "q_proj", queries)?;
        let key = project(net, "k_proj", keys)?;
        let value = project(net, "v_proj", keys)?;
        let query = norm(
            net,
            &format!("{name}.self_attn.q_norm"),
            queries.size,
            &query,
        )?;
        let key = norm(net, &format!("{name}.self_attn.k_norm"), keys.size, &key)?;
        let query = net.node("Mul", &[&query, &scale], vec![]);
        let context = attend(net, queries, keys, (query, key, value), scores);
        let attended = Linear::new(format!("{name}.self_attn.o_proj"), queries.width(), hidden)
            .bias(bias)
            .apply(net, &context)?;
        x = net.node("Add", &[&x, &attended], vec![]);

        let normed = norm(net, &format!("{name}.post_attention_layernorm"), hidden, &x)?;
        let widen = |net: &mut Net<'_>, part: &str| {
            let part = Linear::new(format!("{name}.mlp.{part}"), hidden, wide);
            part.bias(false).apply(net, &normed)
        };
        let gate = widen(net, "gate_proj")?;
        let input = widen(net, "up_proj")?;
        let active = activation.apply(net, &gate);
        let gated = net.node("Mul", &[&active, &input], vec![]);
        let narrow = Linear::new(format!("{name}.mlp.down_proj"), wide, hidden)
            .bias(false)
            .apply(net, &gated)?;
        x = net.node("Add", &[&x, &narrow], vec![]);
    }
    net.scope("final");
    norm(net, "norm", hidden, &x)?;
    declare_output(net, hidden);
    Ok(positions)
}

/// The heads of queries, and those of keys and values.
fn heads(config: &Config) -> Result<(Heads, Heads)> {
    let count = config.size("num_attention_heads")?;
    let shared = config.size_or("num_key_value_heads", count)?;
    let size = config.size_or("head_dim", HEAD_SIZE)?;
    if !count.is_multiple_of(shared) {
        return Err(config.wrong(
            "num_key_value_heads",
            &format!("is {shared}, which does not divide the {count} heads of queries"),
        ));
    }
    let of = |count| Heads { count, size };
    Ok((of(count), of(shared)))
}

fn activation(config: &Config) -> Result<Activation> {
    Activation::or(config, "hidden_act", "silu")
}

fn attention_bias(config: &Config) -> Result<bool> {
    config.flag_or("attention_bias", false)
}

fn epsilon(config: &Config) -> Result<f64> {
    config.positive_or("rms_norm_eps", 1e-6)
}

/// Whether a token sees only those before it. Models that were trained further to see all say so.
fn is_causal(config: &Config) -> Result<bool> {
    config.flag_or("is_causal", true)
}

/// The base of the rotary positions, under its older name or in the newer part of the config.
fn theta(config: &Config) -> Result<f64> {
    if config.value("rope_parameters").is_none() {
        return config.positive_or("rope_theta", 10_000.0);
    }
    let parameters = config.part("rope_parameters")?;
    match parameters.text_or("rope_type", "default")? {
        "default" => parameters.positive_or("rope_theta", 10_000.0),
        other => Err(config.unsupported(format!(
            "rope_parameters in config.json asks for rope_type {other:?}"
        ))),
    }
}
