//! The part of Gemma 3 that reads texts (<https://arxiv.org/abs/2503.19786>), and EmbeddingGemma (<https://arxiv.org/abs/2509.20354>),
//! whose tokens see both ways: normalisation around each part, heads of queries and keys normalised, and layers with a window that
//! turn by other wavelengths than those that see everything.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::config::Config;
use super::decoder::{Biases, Decoder, Layer, Norms};
use super::sight::Sight;
use super::wavelengths::Wavelengths;

/// The size of a head where `config.json` does not say it, as in transformers; so for the values below.
const HEAD_SIZE: usize = 256;

/// Reads the config of a Gemma 3.
pub(super) fn gemma3(config: &Config) -> Result<Decoder> {
    if config.value("attn_logit_softcapping").is_some() {
        return Err(config
            .unsupported("config.json sets attn_logit_softcapping: attention scores are capped"));
    }
    let causal = !config.flag_or("use_bidirectional_attention", false)?;
    if causal && !config.flag_or("is_causal", true)? {
        return Err(config.unsupported(
            "config.json sets is_causal to false, which this family says by \
             use_bidirectional_attention",
        ));
    }
    let bias = config.flag_or("attention_bias", false)?;
    let biases = Biases {
        heads: bias,
        output: bias,
        ..Biases::default()
    };
    let read = Decoder::read(config, Some(HEAD_SIZE), layers(config, causal)?)?;
    Ok(Decoder {
        scale: config.positive_or("query_pre_attn_scalar", 256.0)?,
        activation: Activation::or(config, "hidden_activation", "gelu_pytorch_tanh")?,
        biases,
        norms: Norms::Around,
        head_norms: true,
        // Rounded to the weights' type, which is f32 here whatever a file stores.
        embedding_scale: Some((read.hidden as f64).sqrt() as f32),
        causal,
        ..read
    })
}

fn layers(config: &Config, causal: bool) -> Result<Vec<Layer>> {
    let window = config.size_or("sliding_window", 4096)?;
    let reach = match causal {
        // A token counts as one of its window.
        true => window - 1,
        // transformers makes it `window / 2 + 1`, and tokens see each other that are less than that apart.
        false => window / 2,
    };
    // Two names of one number; the older one has no underscore.
    let period = config.size_or("_sliding_window_pattern", 6)?;
    let period = config.size_or("sliding_window_pattern", period)?;
    let sights = Sight::of_each(config, |layer| match (layer + 1).is_multiple_of(period) {
        true => Sight::Everything,
        false => Sight::Window,
    })?;
    let layer = |sight| {
        Ok(Layer {
            reach: (sight == Sight::Window).then_some(reach),
            waves: waves(config, sight)?,
        })
    };
    sights.into_iter().map(layer).collect()
}

/// In older configs `rope_scaling` is about layers that see everything alone.
fn waves(config: &Config, sight: Sight) -> Result<Wavelengths> {
    let base = match sight {
        Sight::Everything => config.positive_or("rope_theta", 1_000_000.0)?,
        Sight::Window => config.positive_or("rope_local_base_freq", 10_000.0)?,
    };
    match (config.value("rope_parameters"), sight) {
        (None, Sight::Window) => Ok(Wavelengths::of_base(base)),
        (Some(parameters), _)
            if Sight::ALL
                .iter()
                .all(|own| parameters.get(own.key()).is_none()) =>
        {
            Err(config.wrong(
                "rope_parameters",
                "has no part for full_attention or sliding_attention, whose positions differ",
            ))
        }
        _ => Wavelengths::of(config, sight, base),
    }
}
