//! ModernBERT (<https://arxiv.org/abs/2412.13663>): normalisation before each part, rotary positions,
//! gated feed-forward, and layers that alternate between seeing everything and seeing a window.

use isovec_engine::error::Result;
use serde_json::Value;

use super::activation::Activation;
use super::architecture::{Deciding, number};
use super::attention::{Heads, Scores, attention};
use super::classifier;
use super::config::Config;
use super::embeddings::{
    ATTENTION_MASK, INPUT_IDS, Table, declare_input, declare_output, sequence_length,
};
use super::linear::Linear;
use super::mask::{padding_mask, window_mask};
use super::net::Net;
use super::norm::LayerNorm;
use super::rotary::{Places, Rotary};
use super::sight::Sight;
use super::source::Recipe;
use super::wavelengths::Wavelengths;

/// A tensor that every checkpoint of the family holds.
pub(super) const ANCHOR: &str = "embeddings.tok_embeddings.weight";

/// Refuses what the family's config can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    if config.value("rope_scaling").is_some() {
        return Err(config.unsupported("config.json sets rope_scaling: positions are rescaled"));
    }
    Activation::of(config, "hidden_activation")?;
    theta(config, Sight::Everything)?;
    theta(config, Sight::Window)?;
    Ok(())
}

/// What decides vectors and no tensor shows.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let sights = sights(config)?;
    let flag = |key: &str| config.flag_or(key, false).map(|flag| flag.to_string());
    let window = (0..sights.len()).filter(|&layer| sights[layer] == Sight::Window);
    let window: Vec<String> = window.map(|layer| layer.to_string()).collect();
    let mut deciding = vec![
        ("heads", config.size("num_attention_heads")?.to_string()),
        ("layers", sights.len().to_string()),
        (
            "activation",
            format!("{:?}", Activation::of(config, "hidden_activation")?),
        ),
        ("epsilon", number(config.positive_or("norm_eps", 1e-5)?)),
        ("attention_bias", flag("attention_bias")?),
        ("mlp_bias", flag("mlp_bias")?),
        ("norm_bias", flag("norm_bias")?),
        (
            "window",
            config.size_or("local_attention", 128)?.to_string(),
        ),
        ("layers with a window", window.join(",")),
        ("theta", number(theta(config, Sight::Everything)?)),
        ("theta of windows", number(theta(config, Sight::Window)?)),
    ];
    deciding.extend(classifier::modernbert_deciding(config)?);
    Ok(deciding)
}

/// Builds the graph; returns the longest sequence.
pub(super) fn build(config: &Config, net: &mut Net<'_>) -> Result<usize> {
    let hidden = config.size("hidden_size")?;
    let intermediate = config.size("intermediate_size")?;
    let heads = Heads::of(config, "num_attention_heads", hidden)?;
    let activation = Activation::of(config, "hidden_activation")?;
    let positions = Rotary::positions(config, "max_position_embeddings")?;
    Rotary::check_heads(config, heads)?;
    let sights = sights(config)?;
    let attention_bias = config.flag_or("attention_bias", false)?;
    let mlp_bias = config.flag_or("mlp_bias", false)?;
    let norm_bias = config.flag_or("norm_bias", false)?;
    let epsilon = config.positive_or("norm_eps", 1e-5)?;
    let norm = |net: &mut Net<'_>, name: &str, x: &str| {
        LayerNorm {
            name,
            size: hidden,
            epsilon,
            bias: norm_bias,
        }
        .apply(net, x)
    };
    declare_input(net, INPUT_IDS);
    declare_input(net, ATTENTION_MASK);

    net.scope("embeddings");
    let length = sequence_length(net);
    let words = Table {
        name: "embeddings.tok_embeddings",
        rows: config.size("vocab_size")?,
        size: hidden,
    }
    .lookup(net, INPUT_IDS)?;
    let mut x = norm(net, "embeddings.norm", &words)?;

    let seen = |net: &mut Net<'_>, sight| -> Result<(String, Rotary)> {
        let mask = padding_mask(net, ATTENTION_MASK);
        let mask = match sight {
            Sight::Everything => mask,
            Sight::Window => {
                let counting = net.recipe(
                    "positions".into(),
                    vec![positions],
                    Recipe::CountF32(positions),
                );
                let counting = net.rows(&counting, &length);
                // The window holds as many tokens before as after.
                let reach = config.size_or("local_attention", 128)? / 2;
                window_mask(net, &mask, &counting, reach)
            }
        };
        let waves = Wavelengths::of_base(theta(config, sight)?);
        Ok((
            mask,
            Rotary::new(net, heads, waves, Places::Row(positions), &length),
        ))
    };
    let everything = seen(net, Sight::Everything)?;
    let window = seen(net, Sight::Window)?;

    for (layer, sight) in sights.into_iter().enumerate() {
        let name = format!("layers.{layer}");
        net.scope(&name);
        let (mask, rotary) = match sight {
            Sight::Everything => &everything,
            Sight::Window => &window,
        };
        // The embeddings are normalised already.
        let normed = match layer {
            0 => x.clone(),
            _ => norm(net, &format!("{name}.attn_norm"), &x)?,
        };
        let packed = Linear::new(format!("{name}.attn.Wqkv"), hidden, 3 * hidden);
        let packed = packed.bias(attention_bias);
        let query = packed.clone().group(0, 3).apply(net, &normed)?;
        let key = packed.clone().group(1, 3).apply(net, &normed)?;
        let value = packed.group(2, 3).apply(net, &normed)?;
        let scores = Scores {
            mask: Some(mask),
            bias: None,
            rotary: Some(rotary),
        };
        let context = attention(net, heads, (&query, &key, &value), scores);
        let attended = Linear::new(format!("{name}.attn.Wo"), hidden, hidden)
            .bias(attention_bias)
            .apply(net, &context)?;
        x = net.node("Add", &[&x, &attended], vec![]);

        let normed = norm(net, &format!("{name}.mlp_norm"), &x)?;
        let packed = Linear::new(format!("{name}.mlp.Wi"), hidden, 2 * intermediate);
        let packed = packed.bias(mlp_bias);
        let input = packed.clone().group(0, 2).apply(net, &normed)?;
        let gate = packed.group(1, 2).apply(net, &normed)?;
        let active = activation.apply(net, &input);
        let gated = net.node("Mul", &[&active, &gate], vec![]);
        let narrow = Linear::new(format!("{name}.mlp.Wo"), intermediate, hidden)
            .bias(mlp_bias)
            .apply(net, &gated)?;
        x = net.node("Add", &[&x, &narrow], vec![]);
    }
    net.scope("final");
    norm(net, "final_norm", &x)?;
    declare_output(net, hidden);
    classifier::add_to_modernbert(config, net, hidden)?;
    Ok(positions)
}

/// What each layer sees: a list in newer configs, a period in older ones.
fn sights(config: &Config) -> Result<Vec<Sight>> {
    let period = config.size_or("global_attn_every_n_layers", 3)?;
    Sight::of_each(config, |layer| match layer.is_multiple_of(period) {
        true => Sight::Everything,
        false => Sight::Window,
    })
}

/// The base of the rotary wavelengths: under `rope_parameters` in newer configs, at the top in
/// older ones.
fn theta(config: &Config, sight: Sight) -> Result<f64> {
    if let Some(parameters) = config.value("rope_parameters") {
        let parameters = parameters.get(sight.key()).unwrap_or(&Value::Null);
        let kind = parameters.get("rope_type").and_then(Value::as_str);
        if kind.is_some_and(|kind| kind != "default") {
            return Err(config.unsupported(format!(
                "rope_parameters in config.json asks for rope_type {kind:?}"
            )));
        }
        return parameters
            .get("rope_theta")
            .and_then(Value::as_f64)
            .filter(|theta| theta.is_finite() && *theta > 0.0)
            .ok_or_else(|| {
                config.wrong(
                    "rope_parameters",
                    &format!("has no usable rope_theta for {}", sight.key()),
                )
            });
    }
    let everything = config.positive_or("global_rope_theta", 160_000.0)?;
    match sight {
        Sight::Everything => Ok(everything),
        // An explicit null means the same base for both.
        Sight::Window if config.is_null("local_rope_theta") => Ok(everything),
        Sight::Window => config.positive_or("local_rope_theta", 10_000.0),
    }
}
