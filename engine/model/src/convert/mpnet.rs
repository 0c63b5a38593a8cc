//! MPNet (<https://arxiv.org/abs/2004.09297>): BERT's layers with a bias by relative position, the
//! same in every layer; positions counted as RoBERTa does; no token types.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::Scores;
use super::bert;
use super::classifier;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, counted_limit, counted_positions, declare_input,
    declare_output, sequence_length,
};
use super::encoder::LayerNames;
use super::mask::padding_mask;
use super::net::Net;
use super::relative::{OF_MPNET, relative_bias};

/// MPNet's code has this id built in, whatever `pad_token_id` says.
const PADDING_ID: usize = 1;

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    let wanted = OF_MPNET.count;
    let buckets = config.size_or("relative_attention_num_buckets", wanted)?;
    if buckets != wanted {
        return Err(config.unsupported(format!(
            "relative_attention_num_buckets in config.json is {buckets}; MPNet is defined for \
             {wanted}"
        )));
    }
    Activation::of(config, "hidden_act")?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    bert::deciding(config)
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let encoder = bert::encoder(config)?;
    let positions = config.size("max_position_embeddings")?;
    let limit = counted_limit(config, positions, PADDING_ID)?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);

    net.scope("embeddings");
    let words = Table {
        name: "embeddings.word_embeddings",
        rows: config.size("vocab_size")?,
        size: encoder.hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let places = counted_positions(net, PADDING_ID);
    let places = Table {
        name: "embeddings.position_embeddings",
        rows: positions,
        size: encoder.hidden,
    }
    .lookup(net, &places)?;
    let sum = net.node("Add", &[&words, &places], vec![]);
    let mut x = encoder.norm("embeddings.LayerNorm").apply(net, &sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);

    net.scope("encoder");
    let length = sequence_length(net);
    let bias = relative_bias(
        net,
        encoder.heads,
        "encoder.relative_attention_bias.weight",
        (OF_MPNET, limit),
        &length,
    )?;
    let scores = Scores {
        mask: Some(&mask),
        bias: Some(&bias),
        rotary: None,
    };
    for layer in 0..config.size("num_hidden_layers")? {
        let name = format!("encoder.layer.{layer}");
        net.scope(&name);
        x = encoder.layer(net, &layer_names(&name), &x, scores)?;
    }
    declare_output(net, encoder.hidden);
    classifier::add_to_mpnet(config, net, encoder.hidden)?;
    Ok(limit)
}

fn layer_names(layer: &str) -> LayerNames {
    let name = |module: &str| format!("{layer}.{module}");
    LayerNames {
        query: name("attention.attn.q"),
        key: name("attention.attn.k"),
        value: name("attention.attn.v"),
        attention_output: name("attention.attn.o"),
        attention_norm: name("attention.LayerNorm"),
        intermediate: name("intermediate.dense"),
        output: name("output.dense"),
        output_norm: name("output.LayerNorm"),
    }
}
