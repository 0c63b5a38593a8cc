//! What a layer sees of a text, in models whose layers differ.

use isovec_engine::error::Result;
use serde_json::Value;

use super::config::Config;

/// More layers than any model has: what each sees is written out.
const MAX_LAYERS: usize = 10_000;

/// What a layer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    Everything,
    Window,
}

impl Sight {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Everything, Self::Window];

    /// The name under `layer_types` and `rope_parameters`.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Everything => "full_attention",
            Self::Window => "sliding_attention",
        }
    }

    /// What each layer sees: by the list `layer_types` in newer configs, by the family's rule in older ones.
    pub(super) fn of_each(config: &Config, rule: impl Fn(usize) -> Self) -> Result<Vec<Self>> {
        let layers = config.size("num_hidden_layers")?;
        if layers > MAX_LAYERS {
            return Err(config.unsupported(format!("config.json asks for {layers} layers")));
        }
        let Some(types) = config.value("layer_types") else {
            return Ok((0..layers).map(rule).collect());
        };
        let types = types.as_array().filter(|types| types.len() == layers);
        let types = types.ok_or_else(|| {
            config.wrong(
                "layer_types",
                &format!("is not a list of one type for each of {layers} layers"),
            )
        })?;
        let sight = |name: &Value| {
            let mut all = Self::ALL.into_iter();
            all.find(|sight| name.as_str() == Some(sight.key()))
                .ok_or_else(|| {
                    config.unsupported(format!(
                        "layer_types in config.json has {name}; \"full_attention\" and \
                         \"sliding_attention\" can be converted"
                    ))
                })
        };
        types.iter().map(sight).collect()
    }
}
