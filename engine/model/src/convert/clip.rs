//! CLIP (<https://arxiv.org/abs/2103.00020>): what its two halves have in common. One reads texts, the other pictures, and
//! both end in a projection into one space.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::Heads;
use super::config::Config;
use super::patches::{LayerNames, Layers};
use super::{clip_text, clip_vision};

/// The activation where the file names none, as its own library has it.
const ACTIVATION: &str = "quick_gelu";

/// A half, with the sizes where the file names none.
pub(super) struct Half {
    /// Its part of a file of both halves.
    part: &'static str,
    hidden: usize,
    intermediate: usize,
    heads: usize,
}

pub(super) const TEXT: Half = Half {
    part: "text_config",
    hidden: 512,
    intermediate: 2048,
    heads: 8,
};

pub(super) const VISION: Half = Half {
    part: "vision_config",
    hidden: 768,
    intermediate: 3072,
    heads: 12,
};

impl Half {
    /// What the file says of it: all, where the model has no other half.
    pub(super) fn config(&self, config: &Config) -> Result<Config> {
        match has_both(config)? {
            true => config.part(self.part),
            false => Ok(config.clone()),
        }
    }

    pub(super) fn layers(&self, own: &Config) -> Result<usize> {
        own.size_or("num_hidden_layers", 12)
    }

    pub(super) fn sizes(&self, own: &Config) -> Result<Layers> {
        let hidden = own.size_or("hidden_size", self.hidden)?;
        Ok(Layers {
            hidden,
            intermediate: own.size_or("intermediate_size", self.intermediate)?,
            heads: Heads::or(own, "num_attention_heads", self.heads, hidden)?,
            activation: Activation::or(own, "hidden_act", ACTIVATION)?,
            epsilon: own.positive_or("layer_norm_eps", 1e-5)?,
            bias: true,
        })
    }

    fn deciding(&self, config: &Config) -> Result<Deciding> {
        let own = self.config(config)?;
        Ok(self.sizes(&own)?.deciding(self.layers(&own)?))
    }
}

/// Whether the file is of a model with both halves.
pub(super) fn has_both(config: &Config) -> Result<bool> {
    Ok(config.text_or("model_type", "")? == "clip")
}

/// Components of the shared space, which a file of both halves says beside them.
pub(super) fn projection(config: &Config, own: &Config) -> Result<usize> {
    config.size_or("projection_dim", own.size_or("projection_dim", 512)?)
}

/// Refuses what the file can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    let kind = config.text_or("model_type", "")?;
    if kind != "clip_text_model" {
        let own = VISION.config(config)?;
        VISION.sizes(&own)?;
        clip_vision::grid(&own)?;
    }
    if kind != "clip_vision_model" {
        let own = TEXT.config(config)?;
        TEXT.sizes(&own)?;
        clip_text::vocabulary(&own)?;
    }
    Ok(())
}

/// What decides vectors and no tensor shows: of both halves, where there are two, so that their vectors are of one
/// architecture.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    Ok(match config.text_or("model_type", "")? {
        "clip_text_model" => TEXT.deciding(config)?,
        "clip_vision_model" => VISION.deciding(config)?,
        _ => [TEXT.deciding(config)?, VISION.deciding(config)?].concat(),
    })
}

pub(super) fn layer_names(layer: &str) -> LayerNames {
    let name = |module: &str| format!("{layer}.{module}");
    LayerNames {
        norm: name("layer_norm1"),
        query: name("self_attn.q_proj"),
        key: name("self_attn.k_proj"),
        value: name("self_attn.v_proj"),
        attention_output: name("self_attn.out_proj"),
        second_norm: name("layer_norm2"),
        intermediate: name("mlp.fc1"),
        output: name("mlp.fc2"),
    }
}
