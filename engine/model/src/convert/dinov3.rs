//! DINOv3's ViT (<https://arxiv.org/abs/2508.10104>): positions are no part of the tokens, queries and keys turn by the places of
//! their squares. It reads pictures of any size.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores};
use super::config::Config;
use super::net::Net;
use super::patches::{PatchGrid, PatchNames, declare_hidden, embed, token_count};
use super::pre_norm::{LayerNames, Layers};
use super::rotary::{Places, Rotary};
use super::vit::ANCHOR;
use super::wavelengths::Wavelengths;

const LAYER: LayerNames = LayerNames {
    norm: "norm1",
    query: "attention.q_proj",
    key: "attention.k_proj",
    value: "attention.v_proj",
    attention_output: "attention.o_proj",
    second_norm: "norm2",
    intermediate: "mlp.up_proj",
    gate: None,
    output: "mlp.down_proj",
    scales: Some(["layer_scale1.lambda1", "layer_scale2.lambda1"]),
};

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    let heads = layers(config)?.heads;
    if !heads.size.is_multiple_of(4) {
        return Err(config.unsupported(format!(
            "heads of size {} cannot be turned in pairs along two axes",
            heads.size
        )));
    }
    for key in ["proj_bias", "mlp_bias"] {
        if !config.flag_or(key, true)? {
            return Err(config.unsupported(format!("{key} in config.json is false")));
        }
    }
    grid(config)?;
    theta(config)?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let mut deciding = layers(config)?.deciding(config.size("num_hidden_layers")?);
    deciding.push(("theta", number(theta(config)?)));
    Ok(deciding)
}

/// Builds the graph for the pictures that a `preprocessor_config.json` makes, or without one for those of the training; returns
/// how it wants them.
pub(super) fn build(config: &Config, preprocessor: &[u8], net: &mut Net<'_>) -> Result<PatchGrid> {
    let layers = layers(config)?;
    let grid = grid(config)?.made_by(config, preprocessor)?;
    let registers = grid.special - 1;
    let special: [(&str, &[usize]); 2] = [
        (ANCHOR, &[1, 1]),
        ("embeddings.register_tokens", &[1, registers]),
    ];
    let names = PatchNames {
        kernel: "embeddings.patch_embeddings",
        bias: true,
        special: &special[..1 + registers.min(1)],
        positions: None,
    };
    let x = embed(net, &grid, layers.hidden, &names)?;
    let length = token_count(net);
    let places = Places::Grid(grid);
    let waves = Wavelengths::of_base(theta(config)?);
    let rotary = Rotary::new(net, layers.heads, waves, places, &length);
    let scores = Scores {
        rotary: Some(&rotary),
        ..Scores::default()
    };
    let names = LayerNames {
        gate: config
            .flag_or("use_gated_mlp", false)?
            .then_some("mlp.gate_proj"),
        ..LAYER
    };
    let stack = ("layer", config.size("num_hidden_layers")?);
    let x = layers.stack(net, stack, &names, x, scores)?;
    net.scope("final");
    layers.norm(net, "norm", &x)?;
    declare_hidden(net, &grid, layers.hidden);
    Ok(grid)
}

fn grid(config: &Config) -> Result<PatchGrid> {
    let registers = config.count_or("num_register_tokens", 0)?;
    PatchGrid::read(config, 224, 16, 1 + registers)
}

/// The base of the wavelengths.
fn theta(config: &Config) -> Result<f64> {
    config.positive_or("rope_theta", 100.0)
}

fn layers(config: &Config) -> Result<Layers> {
    let hidden = config.size("hidden_size")?;
    Ok(Layers {
        hidden,
        intermediate: config.size("intermediate_size")?,
        heads: Heads::of(config, "num_attention_heads", hidden)?,
        activation: Activation::of(config, "hidden_act")?,
        epsilon: config.positive_or("layer_norm_eps", 1e-5)?,
        bias: [
            config.flag_or("query_bias", true)?,
            config.flag_or("key_bias", false)?,
            config.flag_or("value_bias", true)?,
        ],
    })
}
