//! The half of CLIP (<https://arxiv.org/abs/2103.00020>) that reads pictures, with its projection into the space that texts share.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::tensor::DType;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::Heads;
use super::config::Config;
use super::linear::Linear;
use super::net::Net;
use super::patches::{LayerNames, Layers, PatchGrid, PatchNames, embed};
use crate::onnx::builder::int;

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "vision_model.embeddings.class_embedding";

/// The output: a vector for each picture.
const IMAGE_EMBEDS: &str = "image_embeds";

/// The activation where the file names none, as its own library has it.
const ACTIVATION: &str = "quick_gelu";

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    let vision = vision(config)?;
    sizes(&vision)?;
    grid(&vision)?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    Ok(sizes(&vision(config)?)?.deciding(layers(config)?))
}

/// The number of layers.
pub(super) fn layers(config: &Config) -> Result<usize> {
    vision(config)?.size_or("num_hidden_layers", 12)
}

/// Builds the graph; returns how it wants pictures.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<PatchGrid> {
    let own = vision(config)?;
    let sizes = sizes(&own)?;
    let grid = grid(&own)?;
    // The file of both halves says it beside them.
    let projection = own.size_or("projection_dim", 512)?;
    let projection = config.size_or("projection_dim", projection)?;
    let names = PatchNames {
        kernel: "vision_model.embeddings.patch_embedding",
        bias: false,
        special: &[(ANCHOR, &[])],
        positions: ("vision_model.embeddings.position_embedding.weight", &[]),
    };
    let x = embed(net, &grid, sizes.hidden, &names)?;
    // Spelt like this in every checkpoint.
    let mut x = sizes.norm(net, "vision_model.pre_layrnorm", &x)?;
    for layer in 0..layers(config)? {
        let name = format!("vision_model.encoder.layers.{layer}");
        net.scope(&name);
        x = sizes.layer(net, &layer_names(&name), &x)?;
    }
    net.scope("pooling");
    let first = net.builder().i64s(&[], &[0]);
    let class = net.node("Gather", &[&x, &first], vec![int("axis", 1)]);
    let class = sizes.norm(net, "vision_model.post_layernorm", &class)?;
    Linear::new("visual_projection", sizes.hidden, projection)
        .bias(false)
        .apply(net, &class)?;
    let name = net.name_last(IMAGE_EMBEDS);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(projection)];
    net.builder().output(&name, DType::F32, &dims);
    Ok(grid)
}

/// The part of the file that is about pictures: all of it where the model has no other half.
fn vision(config: &Config) -> Result<Config> {
    match config.text_or("model_type", "")? {
        "clip" => config.part("vision_config"),
        _ => Ok(config.clone()),
    }
}

fn grid(vision: &Config) -> Result<PatchGrid> {
    PatchGrid::read(vision, 224, 32, 1)
}

fn sizes(vision: &Config) -> Result<Layers> {
    let hidden = vision.size_or("hidden_size", 768)?;
    Ok(Layers {
        hidden,
        intermediate: vision.size_or("intermediate_size", 3072)?,
        heads: Heads::or(vision, "num_attention_heads", 12, hidden)?,
        activation: Activation::or(vision, "hidden_act", ACTIVATION)?,
        epsilon: vision.positive_or("layer_norm_eps", 1e-5)?,
        bias: true,
    })
}

fn layer_names(layer: &str) -> LayerNames {
    let name = |module: &str| format!("{layer}.{module}");
    LayerNames {
        norm: name("layer_norm1"),
        query: name("self_attn.q_proj"),
        key: name("self_attn.k_proj"),
        value: name("self_attn.v_proj"),
        attention_output: name("self_attn.out_proj"),
        second_norm: name("layer_norm2"),
        intermediate: name("mlp.fc1"),
        output: name("mlp.fc2"),
    }
}
