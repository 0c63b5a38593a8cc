//! DistilBERT (<https://arxiv.org/abs/1910.01108>): BERT's layers under other names, no token types.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::{Heads, Scores};
use super::classifier;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, declare_input, declare_output, sequence_length,
};
use super::encoder::{Encoder, LayerNames};
use super::mask::padding_mask;
use super::net::Net;

/// Not in the config: the family has it built in.
pub(super) const EPSILON: f64 = 1e-12;

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    Activation::of(config, "activation")?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    Ok(vec![
        ("heads", config.size("n_heads")?.to_string()),
        ("layers", config.size("n_layers")?.to_string()),
        (
            "activation",
            format!("{:?}", Activation::of(config, "activation")?),
        ),
    ])
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let hidden = config.size("dim")?;
    let encoder = Encoder {
        hidden,
        intermediate: config.size("hidden_dim")?,
        heads: Heads::of(config, "n_heads", hidden)?,
        activation: Activation::of(config, "activation")?,
        epsilon: EPSILON,
    };
    let positions = config.size("max_position_embeddings")?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);

    net.scope("embeddings");
    let length = sequence_length(net);
    let words = Table {
        name: "embeddings.word_embeddings",
        rows: config.size("vocab_size")?,
        size: hidden,
    }
    .lookup(net, INPUT_IDS)?;
    // Sinusoidal positions are stored like learned ones.
    let places = Table {
        name: "embeddings.position_embeddings",
        rows: positions,
        size: hidden,
    }
    .first(net, &length)?;
    let sum = net.node("Add", &[&words, &places], vec![]);
    let mut x = encoder.norm("embeddings.LayerNorm").apply(net, &sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: None,
    };
    for layer in 0..config.size("n_layers")? {
        let name = format!("transformer.layer.{layer}");
        net.scope(&name);
        x = encoder.layer(net, &layer_names(&name), &x, scores)?;
    }
    declare_output(net, hidden);
    classifier::add_to_distilbert(config, net, hidden)?;
    Ok(positions)
}

fn layer_names(layer: &str) -> LayerNames {
    let name = |module: &str| format!("{layer}.{module}");
    LayerNames {
        query: name("attention.q_lin"),
        key: name("attention.k_lin"),
        value: name("attention.v_lin"),
        attention_output: name("attention.out_lin"),
        attention_norm: name("sa_layer_norm"),
        intermediate: name("ffn.lin1"),
        output: name("ffn.lin2"),
        output_norm: name("output_layer_norm"),
    }
}
