//! DINOv2 (<https://arxiv.org/abs/2304.07193>): a ViT whose outputs are scaled layer by layer, made for pictures of any size.
//! With registers (<https://arxiv.org/abs/2309.16588>) it has more tokens that are no square; they have no position.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::{Heads, Scores};
use super::config::Config;
use super::net::Net;
use super::patches::{PatchGrid, PatchNames, StoredPositions, declare_hidden, embed};
use super::pre_norm::{LayerNames, Layers};
use super::vit::ANCHOR;

const LAYER: LayerNames = LayerNames {
    norm: "norm1",
    query: "attention.attention.query",
    key: "attention.attention.key",
    value: "attention.attention.value",
    attention_output: "attention.output.dense",
    second_norm: "norm2",
    intermediate: "mlp.fc1",
    gate: None,
    output: "mlp.fc2",
    scales: Some(["layer_scale1.lambda1", "layer_scale2.lambda1"]),
};

const GATED: LayerNames = LayerNames {
    intermediate: "mlp.weights_in",
    gate: Some("mlp.weights_in"),
    output: "mlp.weights_out",
    ..LAYER
};

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    layers(config)?;
    stored(config)?;
    registers(config)?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let mut deciding = layers(config)?.deciding(config.size("num_hidden_layers")?);
    deciding.push(("smooth positions", has_registers(config)?.to_string()));
    Ok(deciding)
}

/// Builds the graph for the pictures that a `preprocessor_config.json` makes, or without one for those of the training; returns
/// how it wants them.
pub(super) fn build(config: &Config, preprocessor: &[u8], net: &mut Net<'_>) -> Result<PatchGrid> {
    let layers = layers(config)?;
    let stored = stored(config)?;
    let registers = registers(config)?;
    let grid = PatchGrid {
        special: 1 + registers,
        ..stored.made_by(config, preprocessor)?
    };
    let special: [(&str, &[usize]); 2] = [
        (ANCHOR, &[1, 1]),
        ("embeddings.register_tokens", &[1, registers]),
    ];
    let names = PatchNames {
        kernel: "embeddings.patch_embeddings.projection",
        bias: true,
        special: &special[..1 + registers.min(1)],
        positions: Some(StoredPositions {
            name: "embeddings.position_embeddings",
            axes: &[1],
            grid: stored,
            // transformers' `interpolate_pos_encoding` of the one has no `antialias`, and that of the other has it.
            smooth: has_registers(config)?,
        }),
    };
    let x = embed(net, &grid, layers.hidden, &names)?;
    let names = match gated(config)? {
        true => &GATED,
        false => &LAYER,
    };
    let stack = ("encoder.layer", config.size("num_hidden_layers")?);
    let x = layers.stack(net, stack, names, x, Scores::default())?;
    net.scope("final");
    layers.norm(net, "layernorm", &x)?;
    declare_hidden(net, &grid, layers.hidden);
    Ok(grid)
}

fn has_registers(config: &Config) -> Result<bool> {
    Ok(config.text_or("model_type", "")? == "dinov2_with_registers")
}

/// Tokens that are no square, besides the first.
fn registers(config: &Config) -> Result<usize> {
    match has_registers(config)? {
        true => config.count_or("num_register_tokens", 4),
        false => Ok(0),
    }
}

/// The grid that the checkpoint has positions for.
fn stored(config: &Config) -> Result<PatchGrid> {
    let side = match has_registers(config)? {
        true => 16,
        false => 14,
    };
    PatchGrid::read(config, 224, side, 1)
}

fn gated(config: &Config) -> Result<bool> {
    config.flag_or("use_swiglu_ffn", false)
}

fn layers(config: &Config) -> Result<Layers> {
    let hidden = config.size("hidden_size")?;
    let wide = (hidden as f64 * config.positive_or("mlp_ratio", 4.0)?) as usize;
    // Counts are multiplied with each other: one that is too large is refused as others are.
    if wide == 0 || wide > u32::MAX as usize / 4 {
        return Err(config.wrong("mlp_ratio", "makes no usable size"));
    }
    let (intermediate, activation) = match gated(config)? {
        // Two thirds, to the next multiple of 8.
        true => ((wide * 2 / 3).next_multiple_of(8), Activation::Silu),
        false => (wide, Activation::of(config, "hidden_act")?),
    };
    Ok(Layers {
        hidden,
        intermediate,
        heads: Heads::of(config, "num_attention_heads", hidden)?,
        activation,
        epsilon: config.positive_or("layer_norm_eps", 1e-6)?,
        bias: [config.flag_or("qkv_bias", true)?; 3],
    })
}
