//! NomicBERT (<https://arxiv.org/abs/2402.01613>): BERT with rotary positions, a gated feed-forward
//! and few biases; its config has GPT-2's names. Its second version (<https://arxiv.org/abs/2502.07972>) has experts in every other
//! layer, and no gate.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attention};
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, TOKEN_TYPE_IDS, Table, declare_input, declare_output,
    sequence_length,
};
use super::experts::Experts;
use super::linear::Linear;
use super::mask::padding_mask;
use super::net::Net;
use super::norm::LayerNorm;
use super::rotary::{Places, Rotary};
use super::wavelengths::Wavelengths;

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    config.refuse_flag("prenorm", "normalisation stands before each part")?;
    config.refuse_flag(
        "parallel_block",
        "attention and feed-forward run side by side",
    )?;
    config.refuse_flag("use_rms_norm", "normalisation is by root mean square")?;
    config.refuse_flag("causal", "a token sees only the tokens before it")?;
    config.refuse_flag(
        "rotary_emb_interleaved",
        "neighbours are paired, not halves",
    )?;
    if config.positive_or("rotary_emb_fraction", 1.0)? != 1.0 {
        return Err(config.unsupported("config.json sets rotary_emb_fraction: heads turn in part"));
    }
    if config.value("rotary_emb_scale_base").is_some() {
        return Err(config.unsupported("config.json sets rotary_emb_scale_base"));
    }
    let function = Function::read(config)?;
    if Experts::read(config)?.is_some() && function.is_gated {
        return Err(config.unsupported("config.json sets num_experts, and its experts are gated"));
    }
    Ok(())
}

/// The function inside the feed-forward.
struct Function {
    activation: Activation,
    /// Whether it is taken of a gate, with which the input is multiplied.
    is_gated: bool,
}

impl Function {
    fn read(config: &Config) -> Result<Self> {
        let (activation, is_gated) = match config.text_or("activation_function", "swiglu")? {
            "swiglu" => (Activation::Silu, true),
            "geglu" => (Activation::Gelu, true),
            "gelu" => (Activation::Gelu, false),
            other => {
                return Err(config.unsupported(format!(
                    "activation_function in config.json is {other:?}; swiglu, geglu and gelu can be converted"
                )));
            }
        };
        Ok(Self {
            activation,
            is_gated,
        })
    }

    fn name(&self) -> String {
        match self.is_gated {
            true => format!("{:?}", self.activation),
            false => format!("{:?} without a gate", self.activation),
        }
    }
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let flag = |key: &str| config.flag_or(key, true).map(|flag| flag.to_string());
    let types = config.count_or("type_vocab_size", 2)? > 0;
    let mut deciding = vec![
        ("heads", config.size("n_head")?.to_string()),
        ("layers", config.size("n_layer")?.to_string()),
        ("gate", Function::read(config)?.name()),
        (
            "epsilon",
            number(config.positive_or("layer_norm_epsilon", 1e-12)?),
        ),
        (
            "theta",
            number(config.positive_or("rotary_emb_base", 10_000.0)?),
        ),
        ("attention_bias", flag("qkv_proj_bias")?),
        ("wide_bias", flag("mlp_fc1_bias")?),
        ("narrow_bias", flag("mlp_fc2_bias")?),
        ("token types", types.to_string()),
    ];
    if let Some(experts) = Experts::read(config)? {
        deciding.push(("experts", experts.deciding()));
    }
    Ok(deciding)
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let hidden = config.size("n_embd")?;
    let intermediate = config.size("n_inner")?;
    let heads = Heads::of(config, "n_head", hidden)?;
    Rotary::check_heads(config, heads)?;
    let function = Function::read(config)?;
    let experts = Experts::read(config)?;
    let attention_bias = config.flag_or("qkv_proj_bias", true)?;
    let wide_bias = config.flag_or("mlp_fc1_bias", true)?;
    let narrow_bias = config.flag_or("mlp_fc2_bias", true)?;
    let epsilon = config.positive_or("layer_norm_epsilon", 1e-12)?;
    let theta = config.positive_or("rotary_emb_base", 10_000.0)?;
    let mut positions = Rotary::positions(config, "n_positions")?;
    if config.value("rotary_scaling_factor").is_some() {
        // Past the length it was trained with, such a model rescales its positions by the length
        // of the batch, so that a text's vector would depend on its neighbours: not offered.
        positions = positions.min(config.size_or("max_trained_positions", 2048)?);
    }
    let norm = |net: &mut Net<'_>, name: &str, x: &str| {
        LayerNorm {
            name,
            size: hidden,
            epsilon,
            bias: true,
        }
        .apply(net, x)
    };
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);
    let types = config.count_or("type_vocab_size", 2)?;
    if types > 0 {
        declare_input(net, TOKEN_TYPE_IDS);
    }

    net.scope("embeddings");
    let length = sequence_length(net);
    let mut x = Table {
        name: "embeddings.word_embeddings",
        rows: config.size("vocab_size")?,
        size: hidden,
    }
    .lookup(net, INPUT_IDS)?;
    if types > 0 {
        let kinds = Table {
            name: "embeddings.token_type_embeddings",
            rows: types,
            size: hidden,
        }
        .lookup(net, TOKEN_TYPE_IDS)?;
        x = net.node("Add", &[&x, &kinds], vec![]);
    }
    x = norm(net, "emb_ln", &x)?;
    let mask = padding_mask(net, ATTENTION_MASK);
    let waves = Wavelengths::of_base(theta);
    let rotary = Rotary::new(net, heads, waves, Places::Row(positions), &length);
    let scores = Scores {
        mask: Some(&mask),
        bias: None,
        rotary: Some(&rotary),
    };

    for layer in 0..config.size("n_layer")? {
        let name = format!("encoder.layers.{layer}");
        net.scope(&name);
        let packed = Linear::new(format!("{name}.attn.Wqkv"), hidden, 3 * hidden);
        let packed = packed.bias(attention_bias);
        let query = packed.clone().group(0, 3).apply(net, &x)?;
        let key = packed.clone().group(1, 3).apply(net, &x)?;
        let value = packed.group(2, 3).apply(net, &x)?;
        let context = attention(net, heads, (&query, &key, &value), scores);
        let attended = Linear::new(format!("{name}.attn.out_proj"), hidden, hidden)
            .bias(attention_bias)
            .apply(net, &context)?;
        let sum = net.node("Add", &[&attended, &x], vec![]);
        x = norm(net, &format!("{name}.norm1"), &sum)?;

        let mlp = format!("{name}.mlp");
        let narrow = match experts.filter(|experts| experts.are_in(layer)) {
            Some(experts) => {
                experts.apply(net, &mlp, [hidden, intermediate], function.activation, &x)?
            }
            None => {
                let wide = |net: &mut Net<'_>, module: &str| {
                    Linear::new(format!("{mlp}.{module}"), hidden, intermediate)
                        .bias(wide_bias)
                        .apply(net, &x)
                };
                let inner = match function.is_gated {
                    true => {
                        let input = wide(net, "fc11")?;
                        let gating = wide(net, "fc12")?;
                        let gating = function.activation.apply(net, &gating);
                        net.node("Mul", &[&input, &gating], vec![])
                    }
                    false => {
                        let input = wide(net, "fc1")?;
                        function.activation.apply(net, &input)
                    }
                };
                Linear::new(format!("{mlp}.fc2"), intermediate, hidden)
                    .bias(narrow_bias)
                    .apply(net, &inner)?
            }
        };
        let sum = net.node("Add", &[&narrow, &x], vec![]);
        x = norm(net, &format!("{name}.norm2"), &sum)?;
    }
    declare_output(net, hidden);
    Ok(positions)
}
