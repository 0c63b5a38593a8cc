//! RoBERTa (<https://arxiv.org/abs/1907.11692>), XLM-R (<https://arxiv.org/abs/1911.02116>) and
//! CamemBERT: BERT's layers, positions that count tokens from the padding id on, and one token
//! type, which no input chooses.

use isovec_engine::error::Result;

use super::architecture::Deciding;
use super::bert;
use super::classifier;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, counted_limit, counted_positions, declare_input, padding_id,
};
use super::net::Net;

/// The padding id where `config.json` does not say: `<pad>` of every published vocabulary.
pub(super) const PADDING_ID: usize = 1;

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let mut deciding = bert::deciding(config)?;
    let vocabulary = config.size("vocab_size")?;
    let padding_id = padding_id(config, PADDING_ID, vocabulary)?;
    deciding.push(("padding", padding_id.to_string()));
    Ok(deciding)
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let encoder = bert::encoder(config)?;
    let vocabulary = config.size("vocab_size")?;
    let positions = config.size("max_position_embeddings")?;
    let padding_id = padding_id(config, PADDING_ID, vocabulary)?;
    let limit = counted_limit(config, positions, padding_id)?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);

    net.scope("embeddings");
    let words = Table {
        name: "embeddings.word_embeddings",
        rows: vocabulary,
        size: encoder.hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let token_type = Table {
        name: "embeddings.token_type_embeddings",
        rows: config.size_or("type_vocab_size", 1)?,
        size: encoder.hidden,
    }
    .row_zero(net)?;
    let places = counted_positions(net, padding_id);
    let places = Table {
        name: "embeddings.position_embeddings",
        rows: positions,
        size: encoder.hidden,
    }
    .lookup(net, &places)?;
    let sum = net.node("Add", &[&words, &token_type], vec![]);
    let sum = net.node("Add", &[&sum, &places], vec![]);
    bert::layers(config, net, &encoder, &sum)?;
    classifier::add_to_roberta(config, net, encoder.hidden)?;
    Ok(limit)
}
