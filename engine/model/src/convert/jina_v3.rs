//! jina-embeddings-v3 (<https://arxiv.org/abs/2409.10173>), `model_type` `xlm-roberta` with `position_embedding_type` `rotary`: RoBERTa's
//! layers with rotary positions, and an [adapter](super::adapters) for each task. Its authors' code is
//! <https://huggingface.co/jinaai/xlm-roberta-flash-implementation>.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::adapters::{Adapters, Spec, original};
use super::architecture::{Deciding, number};
use super::attention::{Scores, attention};
use super::bert;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, declare_input, declare_output, sequence_length,
};
use super::encoder::Encoder;
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use super::rotary::{Places, Rotary};
use super::wavelengths::Wavelengths;
use crate::safetensors::TensorSet;

const WORDS: &str = "embeddings.word_embeddings";

/// Whether the config of an XLM-R is one of this family.
pub(super) fn has_rotary_positions(config: &Config) -> Result<bool> {
    Ok(config.text_or("position_embedding_type", "absolute")? == "rotary")
}

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    config.refuse_flag("is_decoder", "a decoder sees only the tokens before it")?;
    config.refuse_flag("use_reg_tokens", "tokens are added that no text has")?;
    Activation::of(config, "hidden_act")?;
    Spec::of(config)?;
    Ok(())
}

/// A tensor that every checkpoint of the family holds.
pub(super) fn anchor(tensors: &TensorSet) -> &'static str {
    const ADAPTED: &str = "embeddings.word_embeddings.parametrizations.weight.original";
    match tensors
        .names()
        .any(|name| name.contains(".parametrizations."))
    {
        true => ADAPTED,
        false => bert::ANCHOR,
    }
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let mut deciding = bert::deciding(config)?;
    deciding.push(("theta", number(theta(config)?)));
    deciding.push(("adapters", Spec::of(config)?.deciding()));
    Ok(deciding)
}

fn theta(config: &Config) -> Result<f64> {
    config.positive_or("rotary_emb_base", 10_000.0)
}

/// The names of a model's adapters.
pub(super) fn adapters(config: &Config) -> Result<Vec<String>> {
    Ok(Spec::of(config)?.names)
}

/// What is the same in every layer.
struct Layers {
    encoder: Encoder,
    adapters: Option<Adapters>,
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let encoder = bert::encoder(config)?;
    let hidden = encoder.hidden;
    Rotary::check_heads(config, encoder.heads)?;
    let positions = Rotary::positions(config, "max_position_embeddings")?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    let spec = Spec::of(config)?;
    if spec.names.is_empty() && net.holds(&original(WORDS)) {
        return Err(config.wrong(
            "lora_adaptations",
            "names no adapter, but the checkpoint holds some",
        ));
    }
    let adapters = Adapters::declare(&spec, net);
    let layers = Layers { encoder, adapters };

    net.scope("embeddings");
    let words = layers.look_up(net, WORDS, config.size("vocab_size")?, Some(INPUT_IDS))?;
    let types = config.size_or("type_vocab_size", 1)?;
    let kind = layers.look_up(net, "embeddings.token_type_embeddings", types, None)?;
    let sum = net.node("Add", &[&words, &kind], vec![]);
    let mut x = encoder.norm("emb_ln").apply(net, &sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    let length = sequence_length(net);
    let waves = Wavelengths::of_base(theta(config)?);
    let rotary = Rotary::new(net, encoder.heads, waves, Places::Row(positions), &length);
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: Some(&rotary),
    };
    for layer in 0..config.size("num_hidden_layers")? {
        let name = |part: &str| format!("encoder.layers.{layer}.{part}");
        net.scope(format!("encoder.layers.{layer}"));
        let packed = Linear::new(name("mixer.Wqkv"), hidden, 3 * hidden);
        let parts = [0, 1, 2].map(|at| packed.clone().group(at, 3));
        let [query, key, value] = layers.products(net, parts, &x)?;
        let context = attention(net, encoder.heads, (&query, &key, &value), scores);
        let last = Linear::new(name("mixer.out_proj"), hidden, hidden);
        x = layers.added(net, &x, (last, &context), &name("norm1"))?;
        let wide = Linear::new(name("mlp.fc1"), hidden, encoder.intermediate);
        let [wide] = layers.products(net, [wide], &x)?;
        let active = encoder.activation.apply(net, &wide);
        let last = Linear::new(name("mlp.fc2"), encoder.intermediate, hidden);
        x = layers.added(net, &x, (last, &active), &name("norm2"))?;
    }
    declare_output(net, hidden);
    Ok(positions)
}

impl Layers {
    fn look_up(
        &self,
        net: &mut Net<'_>,
        name: &str,
        rows: usize,
        ids: Option<&str>,
    ) -> Result<String> {
        let size = self.encoder.hidden;
        if let Some(adapters) = &self.adapters {
            return adapters.look_up(net, name, [rows, size], ids);
        }
        let table = Table { name, rows, size };
        match ids {
            Some(ids) => table.lookup(net, ids),
            None => table.row_zero(net),
        }
    }

    /// The products of parts of one layer with `x`.
    fn products<const N: usize>(
        &self,
        net: &mut Net<'_>,
        parts: [Linear; N],
        x: &str,
    ) -> Result<[String; N]> {
        let low = match (&self.adapters, parts.first()) {
            (Some(adapters), Some(layer)) => {
                Some(adapters.low(net, &layer.name, layer.input, x)?)
            }
            _ => None,
        };
        let mut products = [const { String::new() }; N];
        for (product, layer) in products.iter_mut().zip(&parts) {
            *product = match (&self.adapters, &low) {
                (Some(adapters), Some(low)) => adapters.apply(net, layer, x, low)?,
                _ => layer.apply(net, x)?,
            };
        }
        Ok(products)
    }

    /// `norm(x + last(y))`.
    fn added(
        &self,
        net: &mut Net<'_>,
        x: &str,
        (last, y): (Linear, &str),
        norm: &str,
    ) -> Result<String> {
        let [made] = self.products(net, [last], y)?;
        let sum = net.node("Add", &[&made, x], vec![]);
        self.encoder.norm(norm).apply(net, &sum)
    }
}
