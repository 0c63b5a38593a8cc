//! DeBERTa-v2 and v3 (<https://arxiv.org/abs/2006.03654>, <https://arxiv.org/abs/2111.09543>), `model_type` `deberta-v2`: BERT's layers
//! with a score for each pair of tokens that also depends on how the query's content meets the distance (content to position), and the
//! key's (position to content). Names of tensors and of options are those of
//! <https://huggingface.co/docs/transformers/model_doc/deberta-v2>.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, context_of, split};
use super::classifier::{add_to_deberta, deberta_deciding};
use super::config::Config;
use super::disentangled::{Disentangled, Distances, Projection};
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, TOKEN_TYPE_IDS, Table, declare_input, declare_output,
    sequence_length,
};
use super::encoder::Encoder;
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use crate::onnx::builder::ints;

/// The longest sequence that distances are made for; a longer one would be a mistake in `config.json`.
const MAX_POSITIONS: usize = 1 << 15;

/// What the scores of a pair are summed up from, beside the product of query and key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Terms {
    /// The query's content with the vector of the distance.
    content_to_position: bool,
    /// The key's content with it.
    position_to_content: bool,
}

impl Terms {
    fn of(config: &Config) -> Result<Self> {
        let named: Vec<String> = match config.value("pos_att_type") {
            Some(serde_json::Value::Array(names)) => {
                let names = names.iter().filter_map(|name| name.as_str());
                names.map(str::to_lowercase).collect()
            }
            _ => {
                let names = config.text_or("pos_att_type", "")?.to_lowercase();
                names.split('|').map(|name| name.trim().into()).collect()
            }
        };
        let has = |term: &str| named.iter().any(|name| name == term);
        let unknown = named
            .iter()
            .find(|name| !["c2p", "p2c"].contains(&&***name));
        match unknown {
            None => Ok(Self {
                content_to_position: has("c2p"),
                position_to_content: has("p2c"),
            }),
            Some(other) => Err(config.unsupported(format!(
                "pos_att_type in config.json names {other:?}; c2p and p2c can be converted"
            ))),
        }
    }

    fn count(self) -> usize {
        usize::from(self.content_to_position) + usize::from(self.position_to_content)
    }
}

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    if !config.flag_or("relative_attention", false)? {
        return Err(config.unsupported(
            "relative_attention in config.json is not true: without it the model is not converted",
        ));
    }
    if let Some(kernel) = whole(config, "conv_kernel_size")?.filter(|&kernel| kernel > 0) {
        return Err(config.unsupported(format!(
            "conv_kernel_size in config.json is {kernel}: a convolution beside the first layer is not converted"
        )));
    }
    let hidden = config.value("hidden_size");
    if let Some(asked) = config.value("embedding_size")
        && Some(asked) != hidden
    {
        return Err(config.unsupported(format!(
            "embedding_size in config.json is {asked}; only hidden_size can be converted"
        )));
    }
    if config.value("attention_head_size").is_some()
        && config.size("attention_head_size")? != heads(config)?.size
    {
        return Err(config.unsupported(
            "attention_head_size in config.json is not hidden_size by num_attention_heads",
        ));
    }
    Terms::of(config)?;
    has_norm(config)?;
    distances(config)?;
    Activation::of(config, "hidden_act")?;
    Ok(())
}

fn heads(config: &Config) -> Result<Heads> {
    Heads::of(config, "num_attention_heads", config.size("hidden_size")?)
}

/// A number that may be below 0, which means none.
fn whole(config: &Config, key: &str) -> Result<Option<usize>> {
    match config.value(key).and_then(serde_json::Value::as_i64) {
        Some(number) if number < 0 => Ok(None),
        _ => Ok(Some(config.count_or(key, 0)?)),
    }
}

/// Whether the vectors of distances are normalised.
fn has_norm(config: &Config) -> Result<bool> {
    match &*config.text_or("norm_rel_ebd", "none")?.to_lowercase() {
        "none" => Ok(false),
        "layer_norm" => Ok(true),
        other => Err(config.unsupported(format!(
            "norm_rel_ebd in config.json is {other:?}; none and layer_norm can be converted"
        ))),
    }
}

fn positions(config: &Config) -> Result<usize> {
    let positions = config.size_or("max_position_embeddings", 512)?;
    if positions > MAX_POSITIONS {
        return Err(config.unsupported(format!(
            "max_position_embeddings in config.json is {positions}; distances are made for up to \
             {MAX_POSITIONS}"
        )));
    }
    Ok(positions)
}

/// How distances fall into buckets.
fn distances(config: &Config) -> Result<Distances> {
    let positions = positions(config)?;
    let furthest = whole(config, "max_relative_positions")?.filter(|&furthest| furthest > 0);
    let furthest = furthest.unwrap_or(positions);
    let buckets = whole(config, "position_buckets")?.filter(|&buckets| buckets > 0);
    // `Distances::bucket` divides by half of the buckets, and by the logarithm of a quotient that has to be above 1.
    if let Some(buckets) = buckets
        && (buckets < 4 || furthest < buckets / 2 + 2)
    {
        return Err(config.unsupported(format!(
            "position_buckets in config.json is {buckets}, for distances of up to {furthest}"
        )));
    }
    if buckets.unwrap_or(furthest) > MAX_POSITIONS {
        return Err(config.unsupported(format!(
            "config.json asks for {} distances; they are made for up to {MAX_POSITIONS}",
            buckets.unwrap_or(furthest)
        )));
    }
    Ok(Distances {
        buckets,
        furthest,
        positions,
    })
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let distances = distances(config)?;
    let mut deciding = vec![
        ("heads", config.size("num_attention_heads")?.to_string()),
        ("layers", config.size("num_hidden_layers")?.to_string()),
        (
            "activation",
            format!("{:?}", Activation::of(config, "hidden_act")?),
        ),
        ("epsilon", number(epsilon(config)?)),
        ("terms", format!("{:?}", Terms::of(config)?)),
        ("buckets", format!("{:?}", distances.buckets)),
        ("furthest", distances.furthest.to_string()),
        ("shared", shares(config)?.to_string()),
        ("norm of distances", has_norm(config)?.to_string()),
        ("positions", has_positions(config)?.to_string()),
        ("token types", (types(config)? > 0).to_string()),
    ];
    deciding.extend(deberta_deciding(config)?);
    Ok(deciding)
}

fn epsilon(config: &Config) -> Result<f64> {
    config.positive_or("layer_norm_eps", 1e-7)
}

/// Whether distances are projected by what queries and keys are.
fn shares(config: &Config) -> Result<bool> {
    config.flag_or("share_att_key", false)
}

/// How many types of tokens there are.
fn types(config: &Config) -> Result<usize> {
    config.count_or("type_vocab_size", 0)
}

/// Whether vectors of positions are added to the words'.
fn has_positions(config: &Config) -> Result<bool> {
    config.flag_or("position_biased_input", true)
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let hidden = config.size("hidden_size")?;
    let encoder = Encoder {
        hidden,
        intermediate: config.size("intermediate_size")?,
        heads: heads(config)?,
        activation: Activation::of(config, "hidden_act")?,
        epsilon: epsilon(config)?,
    };
    let (terms, distances) = (Terms::of(config)?, distances(config)?);
    let types = types(config)?;
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    if types > 0 {
        declare_input(net, TOKEN_TYPE_IDS);
    }

    net.scope("embeddings");
    let length = sequence_length(net);
    let table = |name, rows| Table {
        name,
        rows,
        size: hidden,
    };
    let words = table("embeddings.word_embeddings", config.size("vocab_size")?);
    let mut sum = words.lookup(net, INPUT_IDS)?;
    if has_positions(config)? {
        let places = table("embeddings.position_embeddings", distances.positions);
        let places = places.first(net, &length)?;
        sum = net.node("Add", &[&sum, &places], vec![]);
    }
    if types > 0 {
        let types = table("embeddings.token_type_embeddings", types);
        let types = types.lookup(net, TOKEN_TYPE_IDS)?;
        sum = net.node("Add", &[&sum, &types], vec![]);
    }
    let mut x = encoder.norm("embeddings.LayerNorm").apply(net, &sum)?;
    let mask = padding_mask(net, ATTENTION_MASK);

    net.scope("encoder");
    let layers = Layers {
        encoder,
        terms,
        shared: shares(config)?,
        disentangled: Disentangled::new(
            net,
            distances,
            encoder.heads,
            has_norm(config)?.then_some(encoder.epsilon),
            &length,
        )?,
        mask,
    };
    for layer in 0..config.size("num_hidden_layers")? {
        let name = format!("encoder.layer.{layer}");
        net.scope(&name);
        x = layers.apply(net, &name, &x)?;
    }
    declare_output(net, hidden);
    add_to_deberta(config, net, hidden)?;
    Ok(distances.positions)
}

/// What is the same in every layer.
struct Layers {
    encoder: Encoder,
    terms: Terms,
    /// Whether distances are projected by what queries and keys are.
    shared: bool,
    disentangled: Disentangled,
    mask: String,
}

impl Layers {
    fn apply(&self, net: &mut Net<'_>, layer: &str, x: &str) -> Result<String> {
        let (encoder, hidden) = (&self.encoder, self.encoder.hidden);
        let name = |part: &str| format!("{layer}.attention.{part}");
        let project =
            |net: &mut Net<'_>, part: &str| Linear::new(name(part), hidden, hidden).apply(net, x);
        let query = project(net, "self.query_proj")?;
        let key = project(net, "self.key_proj")?;
        let value = project(net, "self.value_proj")?;
        let context = self.attend(net, layer, [&query, &key, &value])?;
        let last = Linear::new(name("output.dense"), hidden, hidden);
        let x = encoder.added(net, x, (&last, &context), &name("output.LayerNorm"))?;
        encoder.feed_forward(
            net,
            &x,
            [
                &format!("{layer}.intermediate.dense"),
                &format!("{layer}.output.dense"),
                &format!("{layer}.output.LayerNorm"),
            ],
        )
    }

    /// `softmax((q k + q P + k P') / sqrt(size (1 + terms)) + mask) v`, P and P' being the vectors of the pair's distance.
    fn attend(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        [query, key, value]: [&str; 3],
    ) -> Result<String> {
        let heads = self.encoder.heads;
        let scale = ((heads.size * (1 + self.terms.count())) as f64)
            .sqrt()
            .recip() as f32;
        let factor = net.builder().f32(scale);
        let query = net.node("Mul", &[query, &factor], vec![]);
        let [query, key, value] = [&query, key, value].map(|x| {
            let heads = split(net, heads, x);
            net.node("Transpose", &[&heads], vec![ints("perm", &[0, 2, 1, 3])])
        });
        let keys = net.node("Transpose", &[&key], vec![ints("perm", &[0, 1, 3, 2])]);
        let mut sum = net.node("MatMul", &[&query, &keys], vec![]);
        let projection = |own: &str, shared: &str| {
            let part = if self.shared { shared } else { own };
            format!("{layer}.attention.self.{part}")
        };
        if self.terms.content_to_position {
            let by = Projection {
                name: projection("pos_key_proj", "key_proj"),
                of_keys: false,
                factor: 1.0,
            };
            let term = self.disentangled.term(net, &query, by)?;
            sum = net.node("Add", &[&sum, &term], vec![]);
        }
        if self.terms.position_to_content {
            let by = Projection {
                name: projection("pos_query_proj", "query_proj"),
                of_keys: true,
                factor: scale,
            };
            let term = self.disentangled.term(net, &key, by)?;
            sum = net.node("Add", &[&sum, &term], vec![]);
        }
        let sum = net.node("Add", &[&sum, &self.mask], vec![]);
        Ok(context_of(net, heads, &sum, &value))
    }
}
