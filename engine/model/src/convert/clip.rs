//! CLIP (<https://arxiv.org/abs/2103.00020>) and SigLIP (<https://arxiv.org/abs/2303.15343>): what their two halves have in
//! common. One reads texts, the other pictures, and both end in one space.

use isovec_engine::error::Result;

use super::activation::Activation;
use super::architecture::Deciding;
use super::attention::Heads;
use super::config::Config;
use super::pre_norm::{LayerNames, Layers};
use super::{clip_text, clip_vision, siglip_vision};

/// The layers of all halves.
pub(super) const LAYER: LayerNames = LayerNames {
    norm: "layer_norm1",
    query: "self_attn.q_proj",
    key: "self_attn.k_proj",
    value: "self_attn.v_proj",
    attention_output: "self_attn.out_proj",
    second_norm: "layer_norm2",
    intermediate: "mlp.fc1",
    gate: None,
    output: "mlp.fc2",
    scales: None,
};

/// A half, with what holds where the file does not say it, as the model's own library has it.
pub(super) struct Half {
    /// Its part of a file of both halves.
    part: &'static str,
    hidden: usize,
    heads: usize,
    activation: &'static str,
    epsilon: f64,
}

const CLIP_VISION: Half = Half {
    part: "vision_config",
    hidden: 768,
    heads: 12,
    activation: "quick_gelu",
    epsilon: 1e-5,
};

const CLIP_TEXT: Half = Half {
    part: "text_config",
    hidden: 512,
    heads: 8,
    ..CLIP_VISION
};

const SIGLIP_VISION: Half = Half {
    activation: "gelu_pytorch_tanh",
    epsilon: 1e-6,
    ..CLIP_VISION
};

const SIGLIP_TEXT: Half = Half {
    part: "text_config",
    ..SIGLIP_VISION
};

/// The half that reads texts.
pub(super) fn text(config: &Config) -> Result<&'static Half> {
    Ok(match is_siglip(config)? {
        true => &SIGLIP_TEXT,
        false => &CLIP_TEXT,
    })
}

/// The half that reads pictures.
pub(super) fn vision(config: &Config) -> Result<&'static Half> {
    Ok(match is_siglip(config)? {
        true => &SIGLIP_VISION,
        false => &CLIP_VISION,
    })
}

/// Whether the file, or its part for a half, is a SigLIP's.
pub(super) fn is_siglip(config: &Config) -> Result<bool> {
    Ok(config.text_or("model_type", "")?.starts_with("siglip"))
}

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

    /// The same, of the file as it is.
    pub(super) fn layers_of(&self, config: &Config) -> Result<usize> {
        self.layers(&self.config(config)?)
    }

    pub(super) fn sizes(&self, own: &Config) -> Result<Layers> {
        let hidden = own.size_or("hidden_size", self.hidden)?;
        Ok(Layers {
            hidden,
            intermediate: own.size_or("intermediate_size", 4 * self.hidden)?,
            heads: Heads::or(own, "num_attention_heads", self.heads, hidden)?,
            activation: Activation::or(own, "hidden_act", self.activation)?,
            epsilon: own.positive_or("layer_norm_eps", self.epsilon)?,
            bias: [true; 3],
        })
    }

    fn deciding(&self, config: &Config) -> Result<Deciding> {
        let own = self.config(config)?;
        Ok(self.sizes(&own)?.deciding(self.layers(&own)?))
    }
}

/// Whether the file is of a model with both halves.
pub(super) fn has_both(config: &Config) -> Result<bool> {
    Ok(matches!(
        config.text_or("model_type", "")?,
        "clip" | "siglip"
    ))
}

/// Components of the shared space, which a file of both halves says beside them.
pub(super) fn projection(config: &Config, own: &Config) -> Result<usize> {
    config.size_or("projection_dim", own.size_or("projection_dim", 512)?)
}

/// Whether the file is of a model with a half: it has both, or the one whose type ends so.
fn has(config: &Config, half: &str) -> Result<bool> {
    Ok(has_both(config)? || config.text_or("model_type", "")?.ends_with(half))
}

/// Refuses what the file can ask for and this conversion does not do.
pub(super) fn check(config: &Config) -> Result<()> {
    if has(config, "vision_model")? {
        let vision = vision(config)?;
        let own = vision.config(config)?;
        vision.sizes(&own)?;
        match is_siglip(config)? {
            true => siglip_vision::check(&own)?,
            false => _ = clip_vision::grid(&own)?,
        }
    }
    if has(config, "text_model")? {
        let text = text(config)?;
        text.sizes(&text.config(config)?)?;
        clip_text::vocabulary(config)?;
    }
    Ok(())
}

/// What decides vectors and no tensor shows: of both halves, where there are two, so that their vectors are of one
/// architecture.
pub(super) fn deciding(config: &Config) -> Result<Deciding> {
    let mut deciding = Deciding::new();
    if has(config, "text_model")? {
        deciding.extend(text(config)?.deciding(config)?);
    }
    if has(config, "vision_model")? {
        deciding.extend(vision(config)?.deciding(config)?);
    }
    Ok(deciding)
}
