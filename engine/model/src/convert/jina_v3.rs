//! Jina's XLM-R: RoBERTa's layers, whose tensors have names of their own. jina-embeddings-v3 (<https://arxiv.org/abs/2409.10173>) has
//! rotary positions, and an [adapter](super::adapters) for each task; jina-colbert-v2 has no adapters; jina-reranker-v2 has XLM-R's
//! positions and its head. The authors' code is <https://huggingface.co/jinaai/xlm-roberta-flash-implementation>, and some of their
//! configs name no `model_type`.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::adapters::{Adapters, Spec, original};
use super::architecture::{Deciding, number};
use super::attention::{Scores, attention};
use super::bert;
use super::classifier::add_to_roberta;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, counted_limit, counted_positions, declare_input,
    declare_output, padding_id, sequence_length,
};
use super::encoder::Encoder;
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use super::roberta;
use super::rotary::{Places, Rotary};
use super::wavelengths::Wavelengths;
use crate::safetensors::TensorSet;

const WORDS: &str = "embeddings.word_embeddings";

/// The class that reads the family's configs.
const CONFIG_CLASS: &str = "XLMRobertaFlashConfig";

/// Whether the config of an XLM-R is one of this family.
pub(super) fn is_of_family(config: &Config) -> Result<bool> {
    Ok(Positions::read(config)? == Positions::Rotary || is_read_by_own_class(config))
}

/// Whether `auto_map` names the family's class of configs.
pub(super) fn is_read_by_own_class(config: &Config) -> bool {
    let class = config
        .value("auto_map")
        .and_then(|map| map.get("AutoConfig"));
    let class = class.and_then(|class| class.as_str()).unwrap_or_default();
    class.rsplit('.').next() == Some(CONFIG_CLASS)
}

/// How tokens are told apart by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Positions {
    /// Queries and keys are turned.
    Rotary,
    /// A vector of each place is added, which is counted as RoBERTa counts.
    Counted,
}

impl Positions {
    fn read(config: &Config) -> Result<Self> {
        match config.text_or("position_embedding_type", "absolute")? {
            "rotary" => Ok(Self::Rotary),
            "absolute" => Ok(Self::Counted),
            other => Err(config.unsupported(format!(
                "position_embedding_type in config.json is {other:?}; rotary and absolute can be converted"
            ))),
        }
    }
}

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    config.refuse_flag("is_decoder", "a decoder sees only the tokens before it")?;
    config.refuse_flag("use_reg_tokens", "tokens are added that no text has")?;
    Activation::of(config, "hidden_act")?;
    let spec = Spec::of(config)?;
    if Positions::read(config)? == Positions::Counted && !spec.names.is_empty() {
        return Err(config.unsupported(
            "config.json sets lora_adaptations and position_embedding_type \"absolute\": how positions are adapted is not known",
        ));
    }
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
    match Positions::read(config)? {
        Positions::Rotary => deciding.push(("theta", number(theta(config)?))),
        Positions::Counted => deciding.push(("padding", padding(config)?.to_string())),
    }
    deciding.push(("adapters", Spec::of(config)?.deciding()));
    Ok(deciding)
}

fn padding(config: &Config) -> Result<usize> {
    padding_id(config, roberta::PADDING_ID, config.size("vocab_size")?)
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
    let places = Positions::read(config)?;
    let positions = match places {
        Positions::Rotary => {
            Rotary::check_heads(config, encoder.heads)?;
            Rotary::positions(config, "max_position_embeddings")?
        }
        Positions::Counted => config.size("max_position_embeddings")?,
    };
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
    let mut sum = net.node("Add", &[&words, &kind], vec![]);
    let mut longest = positions;
    if places == Positions::Counted {
        let padding = padding(config)?;
        longest = counted_limit(config, positions, padding)?;
        let counted = counted_positions(net, padding);
        let name = "embeddings.position_embeddings";
        let own = layers.look_up(net, name, positions, Some(&counted))?;
        sum = net.node("Add", &[&sum, &own], vec![]);
    }
    let mut x = encoder.norm("emb_ln").apply(net, &sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    let length = sequence_length(net);
    let rotary = match places {
        Positions::Rotary => {
            let (waves, rows) = (Wavelengths::of_base(theta(config)?), Places::Row(positions));
            Some(Rotary::new(net, encoder.heads, waves, rows, &length))
        }
        Positions::Counted => None,
    };
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: rotary.as_ref(),
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
    add_to_roberta(config, net, hidden)?;
    Ok(longest)
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
