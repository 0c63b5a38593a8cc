//! The half of CLIP that reads pictures, with its projection into the space that texts share.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::tensor::DType;

use super::attention::Scores;
use super::clip::{LAYER, projection, vision};
use super::config::Config;
use super::linear::Linear;
use super::net::Net;
use super::patches::{PatchGrid, PatchNames, StoredPositions, embed};
use crate::onnx::builder::int;

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "vision_model.embeddings.class_embedding";

/// The output: a vector for each picture.
pub(super) const IMAGE_EMBEDS: &str = "image_embeds";

/// Builds the graph; returns how it wants pictures.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<PatchGrid> {
    let half = vision(config)?;
    let own = half.config(config)?;
    let sizes = half.sizes(&own)?;
    let grid = grid(&own)?;
    let projection = projection(config, &own)?;
    let names = PatchNames {
        kernel: "vision_model.embeddings.patch_embedding",
        bias: false,
        special: &[(ANCHOR, &[])],
        positions: Some(StoredPositions::of(
            "vision_model.embeddings.position_embedding.weight",
            &[],
            grid,
        )),
    };
    let x = embed(net, &grid, sizes.hidden, &names)?;
    // Spelt like this in every checkpoint.
    let x = sizes.norm(net, "vision_model.pre_layrnorm", &x)?;
    let stack = ("vision_model.encoder.layers", half.layers(&own)?);
    let x = sizes.stack(net, stack, &LAYER, x, Scores::default())?;
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

pub(super) fn grid(own: &Config) -> Result<PatchGrid> {
    PatchGrid::read(own, 224, 32, 1)
}
