//! The half of SigLIP that reads pictures: no token but the squares, and at the end a learned query that attends to all of them.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::tensor::DType;

use super::attention::{Heads, Scores};
use super::clip::{LAYER, vision};
use super::clip_vision::IMAGE_EMBEDS;
use super::config::Config;
use super::linear::Linear;
use super::net::Net;
use super::patches::{PatchGrid, PatchNames, StoredPositions, embed};
use super::source::Recipe;
use crate::onnx::builder::{int, ints};

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "vision_model.head.probe";

/// Refuses what the file can ask for and this conversion does not do.
pub(super) fn check(own: &Config) -> Result<()> {
    if !own.flag_or("vision_use_head", true)? {
        return Err(own.unsupported("vision_use_head in config.json is false: it gives no vector"));
    }
    grid(own)?;
    Ok(())
}

/// Builds the graph; returns how it wants pictures.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<PatchGrid> {
    let half = vision(config)?;
    let own = half.config(config)?;
    let sizes = half.sizes(&own)?;
    let grid = grid(&own)?;
    let names = PatchNames {
        kernel: "vision_model.embeddings.patch_embedding",
        bias: true,
        special: &[],
        positions: Some(StoredPositions::of(
            "vision_model.embeddings.position_embedding.weight",
            &[],
            grid,
        )),
    };
    let x = embed(net, &grid, sizes.hidden, &names)?;
    let stack = ("vision_model.encoder.layers", half.layers(&own)?);
    let x = sizes.stack(net, stack, &LAYER, x, Scores::default())?;
    net.scope("pooling");
    let x = sizes.norm(net, "vision_model.post_layernorm", &x)?;
    let context = attend(net, sizes.heads, sizes.hidden, &x)?;
    let name = |module: &str| format!("vision_model.head.{module}");
    let square = Linear::new(name("attention.out_proj"), sizes.hidden, sizes.hidden);
    let pooled = square.apply(net, &context)?;
    let normed = sizes.norm(net, &name("layernorm"), &pooled)?;
    let fed = sizes.feed_forward(net, "vision_model.head", &LAYER, &normed)?;
    net.node("Add", &[&fed, &pooled], vec![]);
    let name = net.name_last(IMAGE_EMBEDS);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(sizes.hidden)];
    net.builder().output(&name, DType::F32, &dims);
    Ok(grid)
}

/// `[batch, hidden]`: the values of all tokens, weighed by how their keys fit the one query.
///
/// The query is the same for every picture, so its products with keys are products of the tokens with a matrix
/// `[hidden, heads]`. What the bias of keys adds to them is one number for all tokens, which no softmax sees.
fn attend(net: &mut Net<'_>, heads: Heads, hidden: usize, x: &str) -> Result<String> {
    let name = |tensor: &str| format!("vision_model.head.attention.{tensor}");
    let packed = [3 * hidden, hidden];
    let recipe = Recipe::Probe {
        probe: net.checked(ANCHOR, &[1, 1, hidden])?,
        weight: net.checked(&name("in_proj_weight"), &packed)?,
        bias: net.checked(&name("in_proj_bias"), &packed[..1])?,
        heads: heads.count,
    };
    let probe = net.recipe(name("probe"), vec![hidden, heads.count], recipe);
    let scores = net.node("MatMul", &[x, &probe], vec![]);
    // The highest score of all tokens is taken away: exponentials stay finite.
    let tokens = net.builder().ints(&[1]);
    let most = vec![ints("axes", &[1]), int("keepdims", 1)];
    let most = net.node("ReduceMax", &[&scores], most);
    let scores = net.node("Sub", &[&scores, &most], vec![]);
    let shares = net.node("Exp", &[&scores], vec![]);
    let last = net.builder().ints(&[3]);
    let shares = net.node("Unsqueeze", &[&shares, &last], vec![]);

    let values = 2 * hidden..3 * hidden;
    let weight = net.transposed(&name("in_proj_weight"), packed, values.clone())?;
    let bias = net.part(&name("in_proj_bias"), packed[0], values)?;
    let value = net.node("MatMul", &[x, &weight], vec![]);
    let value = net.node("Add", &[&value, &bias], vec![]);
    let shape = [0, 0, heads.count as i64, heads.size as i64];
    let shape = net.builder().ints(&shape);
    let value = net.node("Reshape", &[&value, &shape], vec![]);

    let sum =
        |net: &mut Net<'_>, x: &str| net.node("ReduceSum", &[x, &tokens], vec![int("keepdims", 0)]);
    let weighed = net.node("Mul", &[&value, &shares], vec![]);
    let (weighed, total) = (sum(net, &weighed), sum(net, &shares));
    let context = net.node("Div", &[&weighed, &total], vec![]);
    let shape = net.builder().ints(&[0, hidden as i64]);
    Ok(net.node("Reshape", &[&context, &shape], vec![]))
}

/// What [`Recipe::Probe`] stands for, at f64.
pub(super) fn probe_table(probe: &[f32], weight: &[f32], bias: &[f32], heads: usize) -> Vec<f32> {
    let hidden = probe.len();
    let size = hidden / heads.max(1);
    let mut table = vec![0.0; hidden * heads];
    let row = |at: usize| &weight[at * hidden..][..hidden];
    for at in 0..hidden {
        let products = row(at).iter().zip(probe);
        let products = products.map(|(weight, probe)| f64::from(*weight) * f64::from(*probe));
        let query = (f64::from(bias[at]) + products.sum::<f64>()) / (size as f64).sqrt();
        for (input, key) in row(hidden + at).iter().enumerate() {
            table[input * heads + at / size] += query * f64::from(*key);
        }
    }
    table.into_iter().map(|value: f64| value as f32).collect()
}

fn grid(own: &Config) -> Result<PatchGrid> {
    PatchGrid::read(own, 224, 16, 0)
}
