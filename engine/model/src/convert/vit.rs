//! ViT (<https://arxiv.org/abs/2010.11929>) and DeiT (<https://arxiv.org/abs/2012.12877>), which has a second token that is no
//! square.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::{Heads, Scores};
use super::classifier;
use super::config::Config;
use super::net::Net;
use super::patches::{PatchGrid, PatchNames, StoredPositions, declare_hidden, embed};
use super::pre_norm::{LayerNames, Layers};

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "embeddings.cls_token";

const LAYER: LayerNames = LayerNames {
    norm: "layernorm_before",
    query: "attention.attention.query",
    key: "attention.attention.key",
    value: "attention.attention.value",
    attention_output: "attention.output.dense",
    second_norm: "layernorm_after",
    intermediate: "intermediate.dense",
    gate: None,
    output: "output.dense",
    scales: None,
};

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    Activation::of(config, "hidden_act")?;
    grid(config)?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    Ok(layers(config)?.deciding(config.size("num_hidden_layers")?))
}

/// Builds the graph; returns how it wants pictures.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<PatchGrid> {
    let layers = layers(config)?;
    let grid = grid(config)?;
    let special: [(&str, &[usize]); 2] = [
        (ANCHOR, &[1, 1]),
        ("embeddings.distillation_token", &[1, 1]),
    ];
    let names = PatchNames {
        kernel: "embeddings.patch_embeddings.projection",
        bias: true,
        special: &special[..grid.special],
        positions: Some(StoredPositions::of(
            "embeddings.position_embeddings",
            &[1],
            grid,
        )),
    };
    let x = embed(net, &grid, layers.hidden, &names)?;
    let stack = ("encoder.layer", config.size("num_hidden_layers")?);
    let x = layers.stack(net, stack, &LAYER, x, Scores::default())?;
    net.scope("final");
    layers.norm(net, "layernorm", &x)?;
    declare_hidden(net, &grid, layers.hidden);
    classifier::add_to_vit(config, net, layers.hidden)?;
    Ok(grid)
}

fn grid(config: &Config) -> Result<PatchGrid> {
    let special = match config.text_or("model_type", "")? {
        "deit" => 2,
        _ => 1,
    };
    PatchGrid::read(config, 224, 16, special)
}

fn layers(config: &Config) -> Result<Layers> {
    let hidden = config.size("hidden_size")?;
    Ok(Layers {
        hidden,
        intermediate: config.size("intermediate_size")?,
        heads: Heads::of(config, "num_attention_heads", hidden)?,
        activation: Activation::of(config, "hidden_act")?,
        epsilon: config.positive_or("layer_norm_eps", 1e-12)?,
        bias: [config.flag_or("qkv_bias", true)?; 3],
    })
}
