//! Qwen2 (<https://arxiv.org/abs/2407.10671>), whose queries, keys and values have biases, and Qwen3
//! (<https://arxiv.org/abs/2505.09388>), which normalises each head of queries and keys instead.

use isovec_engine::error::Result;

use super::config::Config;
use super::decoder::{Biases, Decoder, Layer};
use super::sight::Sight;
use super::wavelengths::Wavelengths;

/// The size of a head of Qwen3 where `config.json` does not say it, as in transformers.
const HEAD_SIZE: usize = 128;

/// Reads the config of a Qwen2.
pub(super) fn qwen2(config: &Config) -> Result<Decoder> {
    let biases = Biases {
        heads: true,
        ..Biases::default()
    };
    Ok(Decoder {
        biases,
        ..Decoder::read_causal(config, None, layers(config)?)?
    })
}

/// Reads the config of a Qwen3.
pub(super) fn qwen3(config: &Config) -> Result<Decoder> {
    let bias = config.flag_or("attention_bias", false)?;
    let biases = Biases {
        heads: bias,
        output: bias,
        ..Biases::default()
    };
    Ok(Decoder {
        biases,
        head_norms: true,
        ..Decoder::read_causal(config, Some(HEAD_SIZE), layers(config)?)?
    })
}

/// Where a window is used, the layers from `max_window_layers` on have one.
fn layers(config: &Config) -> Result<Vec<Layer>> {
    let base = config.positive_or("rope_theta", 10_000.0)?;
    let used = config.flag_or("use_sliding_window", false)? && !config.is_null("sliding_window");
    let window = config.size_or("sliding_window", 4096)?;
    let from = config.count_or("max_window_layers", 28)?;
    let sights = Sight::of_each(config, |layer| match used && layer >= from {
        true => Sight::Window,
        false => Sight::Everything,
    })?;
    let layer = |sight| {
        let reach = match sight {
            Sight::Everything => None,
            Sight::Window if used => Some(window - 1),
            Sight::Window => {
                return Err(config.wrong(
                    "layer_types",
                    "has \"sliding_attention\", but use_sliding_window does not turn windows on",
                ));
            }
        };
        let waves = Wavelengths::of(config, sight, base)?;
        Ok(Layer { reach, waves })
    };
    sights.into_iter().map(layer).collect()
}
