//! Decoders: each token sees itself and those before it, unless the model was trained further to see all. Root mean squares normalise
//! before each part; several heads of queries may share one of keys and values (<https://arxiv.org/abs/2305.13245>); positions are
//! rotary, the feed-forward is gated (<https://arxiv.org/abs/2002.05202>). Families differ in the rest, which [`Decoder`] lists.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attend, split};
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, declare_input, declare_output, sequence_length,
};
use super::linear::Linear;
use super::mask::{causal_mask, padding_mask, window_mask};
use super::net::Net;
use super::norm::RmsNorm;
use super::rotary::{Places, Rotary};
use super::source::Recipe;
use super::wavelengths::Wavelengths;

/// A tensor that every checkpoint of these families holds.
pub(super) const ANCHOR: &str = "embed_tokens.weight";

/// More numbers than all heads of any model have.
const MOST_COLUMNS: usize = 1 << 24;

/// A decoder as its config describes it.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Rows of the table of words.
    pub(super) vocabulary: usize,
    /// Size of a token's vector.
    pub(super) hidden: usize,
    /// Size inside the feed-forward.
    pub(super) wide: usize,
    /// The longest sequence.
    pub(super) positions: usize,
    /// How queries are cut.
    pub(super) queries: Heads,
    /// How keys and values are cut.
    pub(super) keys: Heads,
    /// What products of queries and keys are divided by the root of.
    pub(super) scale: f64,
    /// Of the gate.
    pub(super) activation: Activation,
    /// Added under the roots.
    pub(super) epsilon: f64,
    /// Which products have a bias.
    pub(super) biases: Biases,
    /// Where a layer normalises.
    pub(super) norms: Norms,
    /// Whether heads of queries and of keys are normalised.
    pub(super) head_norms: bool,
    /// What the words' vectors are multiplied with.
    pub(super) embedding_scale: Option<f32>,
    /// Whether a token sees only those before it.
    pub(super) causal: bool,
    /// Each layer.
    pub(super) layers: Vec<Layer>,
}

/// What sets one layer apart from another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Layer {
    /// Tokens further apart do not see each other.
    pub(super) reach: Option<usize>,
    /// How positions turn its queries and keys.
    pub(super) waves: Wavelengths,
}

/// Which products have a bias.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Biases {
    /// Queries, keys and values.
    pub(super) heads: bool,
    /// What the heads are joined with.
    pub(super) output: bool,
    /// The three of the feed-forward.
    pub(super) feed_forward: bool,
}

/// Where a layer normalises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Norms {
    /// Before each part, by the weights.
    Before,
    /// Before each part and after it, by one more than the weights.
    Around,
}

impl Decoder {
    /// What the families' configs say in the same words; the rest as Llama has it. `head` is the size of a head where the config does
    /// not say it: none means that all heads together are as wide as a token's vector.
    pub(super) fn read(config: &Config, head: Option<usize>, layers: Vec<Layer>) -> Result<Self> {
        let hidden = config.size("hidden_size")?;
        let (queries, keys) = heads(config, hidden, head)?;
        Rotary::check_heads(config, queries)?;
        Ok(Self {
            vocabulary: config.size("vocab_size")?,
            hidden,
            wide: config.size("intermediate_size")?,
            positions: Rotary::positions(config, "max_position_embeddings")?,
            queries,
            keys,
            scale: queries.size as f64,
            activation: Activation::or(config, "hidden_act", "silu")?,
            epsilon: config.positive_or("rms_norm_eps", 1e-6)?,
            biases: Biases::default(),
            norms: Norms::Before,
            head_norms: false,
            embedding_scale: None,
            causal: true,
            layers,
        })
    }

    /// The same of a config that may say `is_causal`, as models do that were trained further to see all.
    pub(super) fn read_causal(
        config: &Config,
        head: Option<usize>,
        layers: Vec<Layer>,
    ) -> Result<Self> {
        let causal = config.flag_or("is_causal", true)?;
        if !causal && layers.iter().any(|layer| layer.reach.is_some()) {
            return Err(config.unsupported(
                "config.json sets is_causal to false and gives layers a window: how far such a \
                 window reaches forward is not known",
            ));
        }
        Ok(Self {
            causal,
            ..Self::read(config, head, layers)?
        })
    }

    /// What decides vectors and no tensor shows.
    pub(super) fn deciding(&self) -> Deciding {
        let layer = |layer: &Layer| format!("{:?} {}", layer.reach, layer.waves);
        let layers: Vec<String> = self.layers.iter().map(layer).collect();
        vec![
            ("heads", self.queries.count.to_string()),
            ("heads of keys", self.keys.count.to_string()),
            ("size of a head", self.queries.size.to_string()),
            ("scale", number(self.scale)),
            ("activation", format!("{:?}", self.activation)),
            ("epsilon", number(self.epsilon)),
            ("biases", format!("{:?}", self.biases)),
            ("causal", self.causal.to_string()),
            ("layers", layers.join(",")),
        ]
    }

    /// Builds the graph; returns the longest sequence.
    pub(super) fn build(&self, net: &mut Net<'_>) -> Result<usize> {
        declare_input(net, INPUT_IDS);
        declare_input(net, ATTENTION_MASK);

        net.scope("embeddings");
        let length = sequence_length(net);
        let mut x = Table {
            name: "embed_tokens",
            rows: self.vocabulary,
            size: self.hidden,
        }
        .lookup(net, INPUT_IDS)?;
        if let Some(scale) = self.embedding_scale {
            let scale = net.builder().f32(scale);
            x = net.node("Mul", &[&x, &scale], vec![]);
        }
        let seen = self.seen(net, &length);
        for (at, layer) in self.layers.iter().enumerate() {
            let name = format!("layers.{at}");
            net.scope(&name);
            let own = seen.iter().find(|(known, ..)| known == layer);
            let scores = Scores {
                mask: own.map(|(_, mask, _)| mask.as_str()),
                bias: None,
                rotary: own.map(|(.., rotary)| rotary),
            };
            x = self.layer(net, &name, &x, scores)?;
        }
        net.scope("final");
        self.norm(net, "norm", self.hidden, &x)?;
        declare_output(net, self.hidden);
        Ok(self.positions)
    }

    /// The mask and the positions of each kind of layer.
    fn seen(&self, net: &mut Net<'_>, length: &str) -> Vec<(Layer, String, Rotary)> {
        let mut mask = padding_mask(net, ATTENTION_MASK);
        let has_windows = self.layers.iter().any(|layer| layer.reach.is_some());
        let mut counting = String::new();
        if self.causal || has_windows {
            let recipe = Recipe::CountF32(self.positions);
            counting = net.recipe("positions".into(), vec![self.positions], recipe);
            counting = net.rows(&counting, length);
        }
        if self.causal {
            mask = causal_mask(net, &mask, &counting);
        }
        let mut seen: Vec<(Layer, String, Rotary)> = Vec::new();
        for layer in &self.layers {
            if seen.iter().any(|(known, ..)| known == layer) {
                continue;
            }
            let mask = match layer.reach {
                Some(reach) => window_mask(net, &mask, &counting, reach),
                None => mask.clone(),
            };
            let places = Places::Row(self.positions);
            let rotary = Rotary::new(net, self.queries, layer.waves, places, length);
            seen.push((*layer, mask, rotary));
        }
        seen
    }

    fn layer(&self, net: &mut Net<'_>, name: &str, x: &str, scores: Scores<'_>) -> Result<String> {
        let norm = |net: &mut Net<'_>, part: &str, x: &str| {
            self.norm(net, &format!("{name}.{part}"), self.hidden, x)
        };
        let normed = norm(net, "input_layernorm", x)?;
        let mut attended = self.attention(net, name, &normed, scores)?;
        let mut before = "post_attention_layernorm";
        if self.norms == Norms::Around {
            attended = norm(net, before, &attended)?;
            before = "pre_feedforward_layernorm";
        }
        let x = net.node("Add", &[x, &attended], vec![]);
        let normed = norm(net, before, &x)?;
        let mut fed = self.feed_forward(net, name, &normed)?;
        if self.norms == Norms::Around {
            fed = norm(net, "post_feedforward_layernorm", &fed)?;
        }
        Ok(net.node("Add", &[&x, &fed], vec![]))
    }

    fn attention(
        &self,
        net: &mut Net<'_>,
        layer: &str,
        x: &str,
        scores: Scores<'_>,
    ) -> Result<String> {
        let project = |net: &mut Net<'_>, part: &str, heads: Heads| -> Result<String> {
            let name = format!("{layer}.self_attn.{part}");
            let projected = Linear::new(name, self.hidden, heads.width());
            let projected = projected.bias(self.biases.heads).apply(net, x)?;
            Ok(split(net, heads, &projected))
        };
        let mut query = project(net, "q_proj", self.queries)?;
        let mut key = project(net, "k_proj", self.keys)?;
        let value = project(net, "v_proj", self.keys)?;
        if self.head_norms {
            let size = self.queries.size;
            query = self.norm(net, &format!("{layer}.self_attn.q_norm"), size, &query)?;
            key = self.norm(net, &format!("{layer}.self_attn.k_norm"), size, &key)?;
        }
        let scale = net.builder().f32((1.0 / self.scale.sqrt()) as f32);
        let query = net.node("Mul", &[&query, &scale], vec![]);
        let context = attend(net, self.queries, self.keys, (query, key, value), scores);
        let name = format!("{layer}.self_attn.o_proj");
        Linear::new(name, self.queries.width(), self.hidden)
            .bias(self.biases.output)
            .apply(net, &context)
    }

    fn feed_forward(&self, net: &mut Net<'_>, layer: &str, x: &str) -> Result<String> {
        let product = |net: &mut Net<'_>, part: &str, [input, output]: [usize; 2], x: &str| {
            let product = Linear::new(format!("{layer}.mlp.{part}"), input, output);
            product.bias(self.biases.feed_forward).apply(net, x)
        };
        let widen = [self.hidden, self.wide];
        let gate = product(net, "gate_proj", widen, x)?;
        let input = product(net, "up_proj", widen, x)?;
        let active = self.activation.apply(net, &gate);
        let gated = net.node("Mul", &[&active, &input], vec![]);
        product(net, "down_proj", [self.wide, self.hidden], &gated)
    }

    fn norm(&self, net: &mut Net<'_>, name: &str, size: usize, x: &str) -> Result<String> {
        RmsNorm {
            name,
            size,
            epsilon: self.epsilon,
            plus_one: self.norms == Norms::Around,
        }
        .apply(net, x)
    }
}

/// The heads of queries, and those of keys and values.
fn heads(config: &Config, hidden: usize, size: Option<usize>) -> Result<(Heads, Heads)> {
    let count = config.size("num_attention_heads")?;
    let shared = config.size_or("num_key_value_heads", count)?;
    let size = match (config.value("head_dim"), size) {
        (Some(_), _) => config.size("head_dim")?,
        (None, Some(size)) => size,
        (None, None) => Heads::of(config, "num_attention_heads", hidden)?.size,
    };
    if !count.is_multiple_of(shared) {
        return Err(config.wrong(
            "num_key_value_heads",
            &format!("is {shared}, which does not divide the {count} heads of queries"),
        ));
    }
    // All of them are an extent, which a target of 32 bits has to hold.
    if count.checked_mul(size).is_none_or(|all| all > MOST_COLUMNS) {
        return Err(config.wrong(
            "head_dim",
            &format!("is {size}, too many numbers for {count} heads"),
        ));
    }
    let of = |count| Heads { count, size };
    Ok((of(count), of(shared)))
}
