//! Llama (<https://arxiv.org/abs/2302.13971>, <https://arxiv.org/abs/2407.21783>); Mistral (<https://arxiv.org/abs/2310.06825>),
//! every layer of which may see a window; and EuroBERT (<https://arxiv.org/abs/2503.05500>), an encoder of Llama's layers.

use isovec_engine::error::Result;

use super::config::Config;
use super::decoder::{Biases, Decoder, Layer};
use super::sight::Sight;
use super::wavelengths::Wavelengths;

/// The base of positions where `config.json` does not say it, as in transformers.
const LLAMA_BASE: f64 = 10_000.0;

/// Reads the config of a Llama.
pub(super) fn llama(config: &Config) -> Result<Decoder> {
    Ok(Decoder {
        biases: biases(config)?,
        ..Decoder::read_causal(config, None, layers(config, None, LLAMA_BASE)?)?
    })
}

/// Reads the config of a EuroBERT. Its tokens see both ways, whatever `is_causal` says. The defaults are those of its authors' code
/// (<https://huggingface.co/EuroBERT/EuroBERT-210m>).
pub(super) fn eurobert(config: &Config) -> Result<Decoder> {
    Ok(Decoder {
        biases: biases(config)?,
        causal: false,
        epsilon: config.positive_or("rms_norm_eps", 1e-5)?,
        ..Decoder::read(config, None, layers(config, None, 250_000.0)?)?
    })
}

fn biases(config: &Config) -> Result<Biases> {
    let bias = config.flag_or("attention_bias", false)?;
    Ok(Biases {
        heads: bias,
        output: bias,
        feed_forward: config.flag_or("mlp_bias", false)?,
    })
}

/// Reads the config of a Mistral.
pub(super) fn mistral(config: &Config) -> Result<Decoder> {
    for key in ["attention_bias", "mlp_bias"] {
        config.refuse_flag(key, "products of this family have no bias")?;
    }
    // The default is a window, and null is none.
    let window = match config.is_null("sliding_window") {
        true => None,
        false => Some(config.size_or("sliding_window", 4096)?),
    };
    Decoder::read_causal(config, None, layers(config, window, LLAMA_BASE)?)
}

/// Layers that are all alike; `base` is the base of positions where the config has none.
fn layers(config: &Config, window: Option<usize>, base: f64) -> Result<Vec<Layer>> {
    let base = config.positive_or("rope_theta", base)?;
    let all = match window {
        Some(_) => Sight::Window,
        None => Sight::Everything,
    };
    let sights = Sight::of_each(config, |_| all)?;
    if sights.iter().any(|&sight| sight != all) {
        return Err(config.unsupported(
            "layer_types in config.json contradicts sliding_window, which says what every layer of \
             this family sees",
        ));
    }
    let layer = Layer {
        // A token counts as one of its window.
        reach: window.map(|window| window - 1),
        waves: Wavelengths::of(config, Sight::Everything, base)?,
    };
    Ok(vec![layer; sights.len()])
}
