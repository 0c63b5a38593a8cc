//! The half of CLIP that reads texts: a token sees those before it alone, and the last one stands for the text. SigLIP's sees all
//! of a text that is filled up to one length, and ends in a layer of its own.

use isovec_engine::description::Dim;
use isovec_engine::error::Result;
use isovec_engine::tensor::DType;

use super::attention::Scores;
use super::clip::{LAYER, is_siglip, projection, text};
use super::config::Config;
use super::embeddings::{ATTENTION_MASK, INPUT_IDS, Table, declare_input, sequence_length};
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use super::relative::causal_bias;
use crate::head::last_token;

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "text_model.embeddings.token_embedding.weight";

/// The output: a vector for each text.
const TEXT_EMBEDS: &str = "text_embeds";

/// Rows of the table of words.
pub(super) fn vocabulary(config: &Config) -> Result<usize> {
    let default = match is_siglip(config)? {
        true => 32_000,
        false => 49_408,
    };
    text(config)?.config(config)?.size_or("vocab_size", default)
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let half = text(config)?;
    let own = half.config(config)?;
    let sizes = half.sizes(&own)?;
    let siglip = is_siglip(config)?;
    let (positions, projection) = match siglip {
        true => (64, own.size_or("projection_size", sizes.hidden)?),
        false => (77, projection(config, &own)?),
    };
    let key = "max_position_embeddings";
    let positions = own.size_or(key, positions)?;
    if siglip && positions > usize::from(u16::MAX) {
        return Err(own.wrong(key, "is more than texts are filled up to"));
    }
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);

    net.scope("embeddings");
    let length = sequence_length(net);
    let words = Table {
        name: "text_model.embeddings.token_embedding",
        rows: vocabulary(config)?,
        size: sizes.hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let places = Table {
        name: "text_model.embeddings.position_embedding",
        rows: positions,
        size: sizes.hidden,
    }
    .first(net, &length)?;
    let x = net.node("Add", &[&words, &places], vec![]);
    net.scope("encoder");
    let mask = padding_mask(net, ATTENTION_MASK);
    let bias = match siglip {
        true => None,
        false => Some(causal_bias(net, sizes.heads, positions, &length)),
    };
    let scores = Scores {
        mask: Some(&mask),
        bias: bias.as_deref(),
        rotary: None,
    };
    let stack = ("text_model.encoder.layers", half.layers(&own)?);
    let x = sizes.stack(net, stack, &LAYER, x, scores)?;
    net.scope("pooling");
    let normed = sizes.norm(net, "text_model.final_layer_norm", &x)?;
    // The one that ends the text: nothing stands behind it, whatever a text says.
    let last = last_token(net.builder(), &normed);
    let name = match siglip {
        true => "text_model.head",
        false => "text_projection",
    };
    Linear::new(name, sizes.hidden, projection)
        .bias(siglip)
        .apply(net, &last)?;
    let name = net.name_last(TEXT_EMBEDS);
    let dims = [Dim::Symbolic("batch".into()), Dim::Fixed(projection)];
    net.builder().output(&name, DType::F32, &dims);
    Ok(positions)
}
