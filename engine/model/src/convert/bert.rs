//! BERT (<https://arxiv.org/abs/1810.04805>). Its layers are RoBERTa's too.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores};
use super::classifier;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, TOKEN_TYPE_IDS, Table, declare_input, declare_output,
    sequence_length,
};
use super::encoder::{Encoder, LayerNames};
use super::mask::padding_mask;
use super::net::Net;

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "embeddings.word_embeddings.weight";

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    absolute_positions(config)?;
    config.refuse_flag("is_decoder", "a decoder sees only the tokens before it")?;
    config.refuse_flag("add_cross_attention", "the model reads a second sequence")?;
    Activation::of(config, "hidden_act")?;
    Ok(())
}

/// Refuses positions that are not a table of learned vectors.
pub(super) fn absolute_positions(config: &Config) -> Result<()> {
    match config.text_or("position_embedding_type", "absolute")? {
        "absolute" => Ok(()),
        other => Err(config.unsupported(format!(
            "position_embedding_type in config.json is {other:?}; for {} models only \"absolute\" \
             can be converted",
            config.text_or("model_type", "such")?
        ))),
    }
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    Ok(vec![
        ("heads", config.size("num_attention_heads")?.to_string()),
        ("layers", config.size("num_hidden_layers")?.to_string()),
        (
            "activation",
            format!("{:?}", Activation::of(config, "hidden_act")?),
        ),
        (
            "epsilon",
            number(config.positive_or("layer_norm_eps", 1e-12)?),
        ),
    ])
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let encoder = encoder(config)?;
    let positions = config.size("max_position_embeddings")?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    declare_input(net, TOKEN_TYPE_IDS);

    net.scope("embeddings");
    let length = sequence_length(net);
    let words = Table {
        name: "embeddings.word_embeddings",
        rows: config.size("vocab_size")?,
        size: encoder.hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let types = Table {
        name: "embeddings.token_type_embeddings",
        rows: config.size_or("type_vocab_size", 2)?,
        size: encoder.hidden,
    }
    .lookup(net, TOKEN_TYPE_IDS)?;
    let places = Table {
        name: "embeddings.position_embeddings",
        rows: positions,
        size: encoder.hidden,
    }
    .first(net, &length)?;
    let sum = net.node("Add", &[&words, &types], vec![]);
    let sum = net.node("Add", &[&sum, &places], vec![]);
    layers(config, net, &encoder, &sum)?;
    let class = "BertForSequenceClassification";
    classifier::add_to_bert(config, net, encoder.hidden, class)?;
    Ok(positions)
}

/// Sizes of the encoder, which RoBERTa's config names as BERT's does.
pub(super) fn encoder(config: &Config) -> Result<Encoder> {
    let hidden = config.size("hidden_size")?;
    Ok(Encoder {
        hidden,
        intermediate: config.size("intermediate_size")?,
        heads: Heads::of(config, "num_attention_heads", hidden)?,
        activation: Activation::of(config, "hidden_act")?,
        epsilon: config.positive_or("layer_norm_eps", 1e-12)?,
    })
}

/// From the sum of the embeddings to the output: the normalisation and all layers.
pub(super) fn layers(
    config: &Config,
    net: &mut Net<'_>,
    encoder: &Encoder,
    sum: &str,
) -> Result<()> {
    let mut x = encoder.norm("embeddings.LayerNorm").apply(net, sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: None,
    };
    for layer in 0..config.size("num_hidden_layers")? {
        let name = format!("encoder.layer.{layer}");
        net.scope(&name);
        x = encoder.layer(net, &layer_names(&name), &x, scores)?;
    }
    declare_output(net, encoder.hidden);
    Ok(())
}

fn layer_names(layer: &str) -> LayerNames {
    let name = |module: &str| format!("{layer}.{module}");
    LayerNames {
        query: name("attention.self.query"),
        key: name("attention.self.key"),
        value: name("attention.self.value"),
        attention_output: name("attention.output.dense"),
        attention_norm: name("attention.output.LayerNorm"),
        intermediate: name("intermediate.dense"),
        output: name("output.dense"),
        output_norm: name("output.LayerNorm"),
    }
}
