//! The file of models that `--models` names.

use std::path::Path;

use isovec::{Device, Dtype, EmbeddingConfig, ModelTask};
use isovec_serve::ModelSpec;
use serde::Deserialize;
use serde_json::Value;

use crate::config;
use crate::error::{CliError, Result};
use crate::model::bar;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    models: Vec<Entry>,
}

/// A table of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// A folder, written as a path, or a model id.
    source: String,
    name: Option<String>,
    #[serde(default)]
    aliases: Vec<String>,
    task: Option<ModelTask>,
    dtype: Option<Dtype>,
    device: Option<Device>,
    /// Whether the server loads it by itself; without it, it does.
    loaded: Option<bool>,
    /// Knobs over those of the command line.
    config: Option<Value>,
}

impl Entry {
    fn spec(self, under: &EmbeddingConfig) -> Result<ModelSpec, String> {
        let mut config = under.clone();
        if let Some(knobs) = self.config {
            config = config::over(config, knobs).map_err(|error| error.to_string())?;
        }
        if let Some(dtype) = self.dtype {
            config = config.with_dtype(dtype);
        }
        if let Some(device) = self.device {
            config = config.with_device(device);
        }
        let config = config.build().map_err(|error| error.to_string())?;
        let mut spec = ModelSpec::new(&*self.source)
            .with_config(config)
            .with_progress(bar());
        spec.name = self.name;
        spec.aliases = self.aliases;
        spec.task = self.task;
        spec.loaded = self.loaded.unwrap_or(true);
        Ok(spec)
    }
}

/// The models of a file, in its order, each with its knobs over `under`.
pub(super) fn read(path: &Path, under: &EmbeddingConfig) -> Result<Vec<ModelSpec>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(CliError::io(name.to_string()))?;
    parse(&text, under).map_err(|fault| CliError::Usage(format!("{name}: {fault}")))
}

/// The models of a file's text, or what is wrong with it.
pub(crate) fn parse(text: &str, under: &EmbeddingConfig) -> Result<Vec<ModelSpec>, String> {
    let file: File =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let specs = file.models.into_iter().map(|entry| {
        let source = entry.source.clone();
        let spec = entry.spec(under);
        spec.map_err(|error| format!("the model {source}: {error}"))
    });
    specs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<ModelSpec>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("models.toml");
        std::fs::write(&path, text).expect("written");
        let under = EmbeddingConfig::default()
            .with_pool_size(7)
            .with_max_queue(9);
        read(&path, &under)
    }

    #[test]
    fn a_table_says_what_a_model_is_and_changes_the_knobs_that_it_names() {
        let specs = of(r#"
            [[models]]
            source = "b/second"
            [[models]]
            source = "./first"
            name = "first"
            aliases = ["one", "1"]
            task = "rerank"
            dtype = "int8"
            device = "cpu"
            loaded = false
            [models.config.batching]
            max_queue = 100
        "#);
        let specs = specs.expect("readable");
        let under = EmbeddingConfig::default().with_pool_size(7);
        let second = ModelSpec::new("b/second").with_config(under.clone().with_max_queue(9));
        let config = under
            .with_max_queue(100)
            .with_dtype(Dtype::Int8)
            .with_device(Device::Cpu);
        let first = ModelSpec::new("./first")
            .with_name("first")
            .with_alias("one")
            .with_alias("1")
            .with_task(ModelTask::Rerank)
            .with_loaded(false)
            .with_config(config);
        assert_eq!(specs, [second, first]);
    }

    #[test]
    fn faults_are_named_with_the_model_that_has_them() {
        for (text, said) in [
            ("", "models"),
            ("models = []\nport = 7", "port"),
            ("[[models]]\nname = \"a\"", "source"),
            ("[[models]]\nsource = \"a/b\"\ntask = \"sing\"", "sing"),
            ("[[models]]\nsource = \"a/b\"\nsize = 7", "size"),
            (
                "[[models]]\nsource = \"a/b\"\n[models.config]\nspeed = 7",
                "speed",
            ),
            (
                "[[models]]\nsource = \"a/b\"\n[models.config.batching]\nmax_batch_size = 0",
                "the model a/b",
            ),
        ] {
            let error = of(text).expect_err(text).to_string();
            assert!(
                error.contains("models.toml") && error.contains(said),
                "{text}: {error}"
            );
        }
    }
}
