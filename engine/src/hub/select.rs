//! Which files of a repository a model needs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::id::path_fault;
use super::listing::Listing;
use crate::bundle::{HALF_ONNX_FILE, is_checkpoint, takes_half};
use crate::error::{EngineError, Result};

/// Small files that describe an embedding model: of transformers, of tokenizers, and of
/// sentence-transformers.
const DESCRIPTION: [&str; 8] = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
];

/// What may be looked at before the choice is made.
pub(super) const CONFIG: &str = "config.json";
const MODULES: &str = "modules.json";
const SAFETENSORS: &str = "model.safetensors";
const SAFETENSORS_INDEX: &str = "model.safetensors.index.json";
const ONNX: [&str; 2] = ["onnx/model.onnx", "model.onnx"];

/// Which weights to fetch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightFiles {
    /// safetensors, sharded or not, where they are there (and the
    /// [check](FileSelection::accept_safetensors_if) lets them pass), else `onnx/model.onnx`, else
    /// `model.onnx`.
    #[default]
    Auto,
    /// [`HALF_ONNX_FILE`] where it is there and smaller than the safetensors, else as `Auto`.
    Smallest,
    /// This ONNX file and its external data.
    Onnx(String),
    /// None.
    Skip,
}

type ConfigCheck = dyn Fn(&[u8]) -> Result<()> + Send + Sync;

/// The files that are wanted from a repository.
#[derive(Clone)]
pub struct FileSelection {
    optional: Vec<String>,
    required: Vec<String>,
    modules: bool,
    weights: WeightFiles,
    check: Option<Arc<ConfigCheck>>,
}

impl FileSelection {
    /// What an embedding model needs: its configuration, its tokenizer, its sentence-transformers
    /// modules, and its weights.
    pub fn embedding() -> Self {
        Self {
            optional: DESCRIPTION.map(str::to_owned).to_vec(),
            required: Vec::new(),
            modules: true,
            weights: WeightFiles::Auto,
            check: None,
        }
    }

    /// These files and no others; one that the repository lacks is an error.
    pub fn files(paths: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            optional: Vec::new(),
            required: paths.into_iter().map(Into::into).collect(),
            modules: false,
            weights: WeightFiles::Skip,
            check: None,
        }
    }

    /// Chooses the weights; [`WeightFiles::Auto`] unless called.
    pub fn weights(mut self, weights: WeightFiles) -> Self {
        self.weights = weights;
        self
    }

    /// Wants one more file, where the repository has it.
    pub fn and(mut self, path: impl Into<String>) -> Self {
        self.optional.push(path.into());
        self
    }

    /// Shows `config.json` to `check` before safetensors are chosen. Where it fails, ONNX weights
    /// are taken instead, and where there are none, its error is returned, before anything large
    /// is downloaded. A repository without `config.json` counts as failed.
    pub fn accept_safetensors_if(
        mut self,
        check: impl Fn(&[u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Small files whose content the choice depends on, as far as the repository has them.
    pub fn deciding_files<'a>(&self, listing: &'a Listing) -> Vec<&'a str> {
        let single = listing.files.contains_key(SAFETENSORS);
        let auto = match self.weights {
            WeightFiles::Auto => true,
            WeightFiles::Smallest => !half_is_smallest(listing),
            WeightFiles::Onnx(_) | WeightFiles::Skip => false,
        };
        listing
            .files
            .keys()
            .map(String::as_str)
            .filter(|&path| match path {
                CONFIG => auto && self.check.is_some(),
                MODULES => self.modules,
                SAFETENSORS_INDEX => auto && !single,
                _ => false,
            })
            .collect()
    }

    /// Chooses from a listing, given a way to read the [deciding files](Self::deciding_files).
    /// `origin` is for messages. The paths come sorted.
    ///
    /// # Errors
    /// [`EngineError::MissingFile`] when a required file or every kind of weights is missing,
    /// [`EngineError::InvalidModel`] when a deciding file cannot be read, or the check's error.
    pub fn choose(
        &self,
        origin: &str,
        listing: &Listing,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Vec<String>> {
        let has = |path: &str| listing.files.contains_key(path);
        let mut chosen = BTreeSet::new();
        for path in &self.required {
            if !has(path) {
                return Err(EngineError::MissingFile {
                    origin: origin.to_owned(),
                    file: path.clone(),
                    hint: format!("It has {}", list(listing.files.keys(), "no files")),
                });
            }
            chosen.insert(path.clone());
        }
        chosen.extend(self.optional.iter().filter(|path| has(path)).cloned());
        if self.modules && has(MODULES) {
            for folder in module_folders(origin, read)? {
                for file in ["config.json", SAFETENSORS] {
                    let path = format!("{folder}/{file}");
                    if has(&path) {
                        chosen.insert(path);
                    }
                }
            }
        }
        match &self.weights {
            WeightFiles::Skip => {}
            WeightFiles::Onnx(file) => chosen.extend(self.onnx(origin, listing, file)?),
            WeightFiles::Smallest if half_is_smallest(listing) => {
                chosen.extend(self.onnx(origin, listing, HALF_ONNX_FILE)?);
            }
            WeightFiles::Auto | WeightFiles::Smallest => {
                chosen.extend(self.auto(origin, listing, read)?);
            }
        }
        Ok(chosen.into_iter().collect())
    }

    /// Which of alternatives a cached snapshot must have when there is no list to compare it
    /// with; the weights are looked for in any case.
    pub fn essentials(&self) -> &'static [&'static [&'static str]] {
        if self.modules {
            &[
                &["config.json"],
                &["tokenizer.json", "vocab.txt"],
                &["modules.json"],
            ]
        } else {
            &[]
        }
    }

    fn auto(
        &self,
        origin: &str,
        listing: &Listing,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Vec<String>> {
        let has = |path: &str| listing.files.contains_key(path);
        let onnx = ONNX.into_iter().find(|path| has(path));
        if has(SAFETENSORS) || has(SAFETENSORS_INDEX) {
            let fit = match &self.check {
                None => Ok(()),
                Some(check) => read(CONFIG).map_or_else(
                    || {
                        Err(EngineError::MissingFile {
                            origin: origin.to_owned(),
                            file: CONFIG.to_owned(),
                            hint: "Weights in safetensors need it to tell the architecture"
                                .to_owned(),
                        })
                    },
                    |config| check(&config),
                ),
            };
            match (fit, onnx) {
                (Ok(()), _) if has(SAFETENSORS) => return Ok(vec![SAFETENSORS.to_owned()]),
                (Ok(()), _) => return shards(origin, listing, read),
                (Err(error), None) => return Err(error),
                (Err(_), Some(_)) => {}
            }
        }
        match onnx {
            Some(file) => self.onnx(origin, listing, file),
            None => {
                let like = |ending: &str| {
                    list(
                        listing.files.keys().filter(|path| path.ends_with(ending)),
                        "",
                    )
                };
                let (other, torch) = (like(".onnx"), like(".bin"));
                let hint = if !other.is_empty() {
                    format!("Name one of its ONNX files: {other}")
                } else if !torch.is_empty() {
                    format!(
                        "It has only {torch}, which isovec does not read; save the model again as safetensors, or export it to ONNX"
                    )
                } else {
                    "Choose a repository that holds a model's weights".to_owned()
                };
                Err(EngineError::MissingFile {
                    origin: origin.to_owned(),
                    file: format!("{SAFETENSORS}, {SAFETENSORS_INDEX}, {}", ONNX.join(", ")),
                    hint,
                })
            }
        }
    }

    /// An ONNX file and what lies beside it under the usual names of external data:
    /// `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data`.
    fn onnx(&self, origin: &str, listing: &Listing, file: &str) -> Result<Vec<String>> {
        if !listing.files.contains_key(file) {
            let others = list(
                listing.files.keys().filter(|path| path.ends_with(".onnx")),
                "no ONNX file at all",
            );
            return Err(EngineError::MissingFile {
                origin: origin.to_owned(),
                file: file.to_owned(),
                hint: format!("It has {others}"),
            });
        }
        Ok(listing
            .files
            .keys()
            .filter(|path| belongs(path, file))
            .cloned()
            .collect())
    }
}

impl Default for FileSelection {
    fn default() -> Self {
        Self::embedding()
    }
}

impl fmt::Debug for FileSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSelection")
            .field("optional", &self.optional)
            .field("required", &self.required)
            .field("modules", &self.modules)
            .field("weights", &self.weights)
            .field("check", &self.check.is_some())
            .finish()
    }
}

/// Whether a file is this ONNX file or its external data.
fn belongs(path: &str, onnx: &str) -> bool {
    path.strip_prefix(onnx).is_some_and(|rest| {
        rest.is_empty()
            || (!rest.contains('/') && (rest.starts_with("_data") || rest.starts_with(".data")))
    })
}

/// Whether the repository has a 16-bit ONNX file that is smaller than its safetensors. Where the
/// list does not say how large files are, there is nothing to go by.
fn half_is_smallest(listing: &Listing) -> bool {
    let bytes = |wanted: &dyn Fn(&str) -> bool| {
        let mut files = listing.files.iter().filter(|(path, _)| wanted(path));
        files.try_fold(None, |sum, (_, file)| {
            Some(Some(sum.unwrap_or(0) + file.size?))
        })
    };
    let half = bytes(&|path| belongs(path, HALF_ONNX_FILE));
    match (half, bytes(&is_checkpoint)) {
        (Some(Some(half)), Some(checkpoint)) => takes_half(half, checkpoint),
        _ => false,
    }
}

/// The folders that `modules.json` of sentence-transformers names.
fn module_folders(origin: &str, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Module {
        path: String,
    }
    let bytes = read(MODULES).unwrap_or_default();
    let modules: Vec<Module> = serde_json::from_slice(&bytes).map_err(|error| {
        EngineError::invalid_model(format!("{MODULES} of {origin}"), error.to_string())
    })?;
    Ok(modules
        .into_iter()
        .map(|module| module.path)
        .filter(|path| path_fault(path).is_none())
        .collect())
}

/// The index of sharded safetensors, and every shard that it names.
fn shards(
    origin: &str,
    listing: &Listing,
    read: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let invalid = |detail: String| {
        EngineError::invalid_model(format!("{SAFETENSORS_INDEX} of {origin}"), detail)
    };
    let index: Index = serde_json::from_slice(&read(SAFETENSORS_INDEX).unwrap_or_default())
        .map_err(|error| invalid(error.to_string()))?;
    let shards: BTreeSet<String> = index.weight_map.into_values().collect();
    if shards.is_empty() {
        return Err(invalid("it names no shard".to_owned()));
    }
    for shard in &shards {
        if let Some(fault) = path_fault(shard) {
            return Err(invalid(format!(
                "it names a shard {shard:?}, which {fault}"
            )));
        }
        if !listing.files.contains_key(shard) {
            return Err(EngineError::MissingFile {
                origin: origin.to_owned(),
                file: shard.clone(),
                hint: format!("{SAFETENSORS_INDEX} names it; the model was published incomplete"),
            });
        }
    }
    let mut files: Vec<String> = shards.into_iter().collect();
    files.push(SAFETENSORS_INDEX.to_owned());
    Ok(files)
}

/// The first few names, for a message.
fn list<'a>(names: impl Iterator<Item = &'a String>, none: &str) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    match names.as_slice() {
        [] => none.to_owned(),
        few if few.len() <= 8 => few.join(", "),
        many => format!("{} and {} more", many[..8].join(", "), many.len() - 8),
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing::RepoFile;
    use super::*;

    fn listing(paths: &[&str]) -> Listing {
        Listing {
            commit: "0".repeat(40),
            files: paths
                .iter()
                .map(|path| {
                    (
                        path.to_string(),
                        RepoFile {
                            size: None,
                            checksum: None,
                        },
                    )
                })
                .collect(),
        }
    }

    fn nothing(_: &str) -> Option<Vec<u8>> {
        None
    }

    #[test]
    fn a_usual_repository() {
        let listing = listing(&[
            ".gitattributes",
            "1_Pooling/config.json",
            "2_Dense/config.json",
            "2_Dense/model.safetensors",
            "2_Dense/pytorch_model.bin",
            "README.md",
            "config.json",
            "data_config.json",
            "model.safetensors",
            "modules.json",
            "onnx/model.onnx",
            "onnx/model_O4.onnx",
            "openvino/openvino_model.bin",
            "pytorch_model.bin",
            "tokenizer.json",
            "vocab.txt",
        ]);
        let modules = br#"[{"idx":0,"name":"0","path":"","type":"x"},{"path":"1_Pooling"},{"path":"2_Dense"},{"path":"../.."}]"#;
        let read = |path: &str| (path == "modules.json").then(|| modules.to_vec());
        let selection = FileSelection::embedding();
        assert_eq!(selection.deciding_files(&listing), ["modules.json"]);
        assert_eq!(
            selection.choose("a/b", &listing, &read).expect("all there"),
            [
                "1_Pooling/config.json",
                "2_Dense/config.json",
                "2_Dense/model.safetensors",
                "config.json",
                "model.safetensors",
                "modules.json",
                "tokenizer.json",
                "vocab.txt"
            ]
        );
    }

    #[test]
    fn an_architecture_that_is_refused_falls_back_to_onnx_or_says_why() {
        let refuse = FileSelection::embedding().accept_safetensors_if(|config| {
            assert_eq!(config, b"{}");
            Err(EngineError::UnsupportedModel {
                origin: "config.json".into(),
                reason: "it is a gpt".into(),
                hint: "Choose another".into(),
            })
        });
        let read = |path: &str| (path == "config.json").then(|| b"{}".to_vec());
        let with = listing(&[
            "config.json",
            "model.safetensors",
            "onnx/model.onnx",
            "onnx/model.onnx_data",
            "onnx/model.onnx_data_1",
            "onnx/model.onnx.md",
        ]);
        assert_eq!(refuse.deciding_files(&with), ["config.json"]);
        assert_eq!(
            refuse.choose("a/b", &with, &read).expect("by ONNX"),
            [
                "config.json",
                "onnx/model.onnx",
                "onnx/model.onnx_data",
                "onnx/model.onnx_data_1"
            ]
        );
        let without = listing(&["config.json", "model.safetensors"]);
        let error = refuse
            .choose("a/b", &without, &read)
            .expect_err("nothing is left");
        assert!(error.to_string().contains("it is a gpt"), "{error}");
    }

    #[test]
    fn shards_come_from_the_index_and_must_be_there() {
        let index = |shard: &str| {
            let json = format!(
                r#"{{"metadata":{{}},"weight_map":{{"a":"model-1.safetensors","b":{shard:?}}}}}"#
            );
            move |path: &str| (path == SAFETENSORS_INDEX).then(|| json.clone().into_bytes())
        };
        let listing = listing(&[
            SAFETENSORS_INDEX,
            "model-1.safetensors",
            "model-2.safetensors",
        ]);
        let selection = FileSelection::embedding();
        assert_eq!(selection.deciding_files(&listing), [SAFETENSORS_INDEX]);
        assert_eq!(
            selection
                .choose("a/b", &listing, &index("model-2.safetensors"))
                .expect("both shards")
                .len(),
            3
        );
        for (shard, said) in [("model-3.safetensors", "model-3"), ("../../x", "leads out")] {
            let error = selection
                .choose("a/b", &listing, &index(shard))
                .expect_err(shard);
            assert!(error.to_string().contains(said), "{error}");
        }
        assert!(selection.choose("a/b", &listing, &nothing).is_err());
    }

    #[test]
    fn the_smallest_form_is_the_16_bit_file_unless_the_checkpoint_is_as_small() {
        let choose = |files: &[(&str, Option<u64>)]| {
            let files = files.iter().map(|&(path, size)| {
                let file = RepoFile {
                    size,
                    checksum: None,
                };
                (path.to_owned(), file)
            });
            let listing = Listing {
                commit: "0".repeat(40),
                files: files.collect(),
            };
            FileSelection::embedding()
                .weights(WeightFiles::Smallest)
                .choose("a/b", &listing, &nothing)
        };
        let half = (HALF_ONNX_FILE, Some(45));
        let quantised = ("onnx/model_quantized.onnx", Some(23));
        let full = (SAFETENSORS, Some(90));
        assert_eq!(choose(&[full, half, quantised]).unwrap(), [HALF_ONNX_FILE]);
        let data = ("onnx/model_fp16.onnx_data", Some(40));
        assert_eq!(
            choose(&[full, half, data]).unwrap(),
            [HALF_ONNX_FILE, "onnx/model_fp16.onnx_data"]
        );
        assert_eq!(choose(&[half, quantised]).unwrap(), [HALF_ONNX_FILE]);
        for others in [
            vec![(SAFETENSORS, Some(45)), half],
            // A module's own weights are no checkpoint; its data count.
            vec![
                (SAFETENSORS, Some(80)),
                ("2_Dense/model.safetensors", Some(9)),
                half,
                data,
            ],
            vec![full, quantised],
            vec![full, (HALF_ONNX_FILE, None)],
        ] {
            assert_eq!(choose(&others).unwrap(), [SAFETENSORS], "{others:?}");
        }
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let listing = listing(&["onnx/model_quantized.onnx", "config.json"]);
        let named = |name: &str| FileSelection::embedding().weights(WeightFiles::Onnx(name.into()));
        assert_eq!(
            named("onnx/model_quantized.onnx")
                .choose("a/b", &listing, &nothing)
                .expect("is there"),
            ["config.json", "onnx/model_quantized.onnx"]
        );
        for (selection, said) in [
            (named("onnx/model_q4.onnx"), "onnx/model_quantized.onnx"),
            (FileSelection::embedding(), "Name one of its ONNX files"),
            (FileSelection::files(["nowhere.bin"]), "nowhere.bin"),
        ] {
            let error = selection.choose("a/b", &listing, &nothing).expect_err(said);
            assert_eq!(error.kind(), "MissingFile");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
