//! The configuration: a preset, a file on top of it, options on top of that.

use std::path::Path;

use clap::ValueEnum;
use isovec::EmbeddingConfig;
use serde_json::Value;

use crate::error::{CliError, Result};

/// The SDK's presets by the names that the command line gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Many texts: as many runs at the same time as there are cores.
    HighThroughput,
    /// One query at a time: all cores in one run.
    LowLatency,
    /// CUDA, else WebGPU, else the processor, with large batches.
    Gpu,
    /// The processor, or an error.
    Cpu,
    /// Small machines: one run at a time, little kept between runs.
    MemoryConstrained,
    /// Deterministic, one text at a time, the graph as it was written.
    Debug,
}

impl Preset {
    fn config(self) -> EmbeddingConfig {
        match self {
            Self::HighThroughput => EmbeddingConfig::high_throughput(),
            Self::LowLatency => EmbeddingConfig::low_latency(),
            Self::Gpu => EmbeddingConfig::gpu(),
            Self::Cpu => EmbeddingConfig::cpu(),
            Self::MemoryConstrained => EmbeddingConfig::memory_constrained(),
            Self::Debug => EmbeddingConfig::debug(),
        }
    }
}

/// The preset with the file's knobs in place of its own.
pub(crate) fn read(preset: Option<Preset>, file: Option<&Path>) -> Result<EmbeddingConfig> {
    let preset = preset.map_or_else(EmbeddingConfig::default, Preset::config);
    let Some(path) = file else {
        return Ok(preset);
    };
    let text = std::fs::read_to_string(path).map_err(CliError::io(path.display().to_string()))?;
    let fault =
        |detail: String| CliError::Usage(format!("{}: {}", path.display(), detail.trim_end()));
    let ending = path.extension().and_then(|ending| ending.to_str());
    let (alone, knobs): (EmbeddingConfig, Value) = match ending {
        Some("toml") => (
            toml::from_str(&text).map_err(|error| fault(error.to_string()))?,
            toml::from_str(&text).map_err(|error| fault(error.to_string()))?,
        ),
        Some("json") => (
            serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?,
            serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?,
        ),
        _ => return Err(fault("its ending is neither .toml nor .json".into())),
    };
    if preset == EmbeddingConfig::default() {
        return Ok(alone);
    }
    over(preset, knobs).map_err(|error| fault(error.to_string()))
}

/// A configuration with some knobs in place of its own. Knob by knob: a group among them leaves the other knobs of that group
/// alone.
pub(crate) fn over(under: EmbeddingConfig, knobs: Value) -> serde_json::Result<EmbeddingConfig> {
    let mut merged = serde_json::to_value(&under)?;
    merge(&mut merged, knobs);
    let mut merged: EmbeddingConfig = serde_json::from_value(merged)?;
    // It is never written down.
    merged.hub.token = merged.hub.token.or(under.hub.token);
    Ok(merged)
}

fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        // `null` in a JSON file means what a missing key means.
        (_, Value::Null) => {}
        (under, over) => *under = over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_changes_what_it_names_and_leaves_the_rest_of_the_preset() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        std::fs::write(
            &path,
            "[session]\npool_size = 7\n[memory]\nmemory_pressure_threshold = 0.5\n",
        )
        .expect("written");
        let config = read(Some(Preset::MemoryConstrained), Some(&path)).expect("readable");
        let expected = EmbeddingConfig::memory_constrained()
            .with_pool_size(7)
            .with_memory_pressure_threshold(0.5);
        assert_eq!(config, expected);
    }
}
