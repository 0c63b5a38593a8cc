//! From files to a bundle: which file is the model, and which belong to it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::budget::{Budget, Resource};
use isovec_engine::bundle::ModelBundle;
use isovec_engine::content::Content;
use isovec_engine::error::{EngineError, Result};
use isovec_hub::choice::{
    Answer, CONFIG, FileSelection, HEADS_OF_M3, Known, LOGIT_SCORE, MODULES, Presence, SAFETENSORS,
    WeightFiles, Weights, shards_of,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::BundleOptions;
use super::files::Files;
use crate::convert::{LogitScore, STATIC_CONFIG, Wanted, convert_within, family, is_model2vec};
use crate::onnx::read::{External, read};
use crate::safetensors::TensorSet;

/// The file that says how pixels become a model's input.
const PREPROCESSOR: &str = "preprocessor_config.json";

/// The largest side file that is taken along. XLM-R's tokenizer has 17 MB.
const MAX_SIDE_BYTES: u64 = 64 << 20;

/// All side files together.
const MAX_SIDE_TOTAL: u64 = 256 << 20;

/// Loads a model from a folder, or from an entry of the Hugging Face cache, of which the
/// snapshot of `main` is taken.
///
/// Without an explicit [`BundleOptions::onnx_file`] the safetensors checkpoint is taken if
/// its architecture can be converted, else `model.onnx`, else `onnx/model.onnx`: by the rules
/// of [`isovec_hub::choice`], which hubs and pages go by as well.
///
/// Large files are mapped, not read: they must not be changed in place while the bundle or
/// anything made from it lives. Replace them by renaming, as downloads do.
///
/// # Errors
/// [`EngineError::MissingFile`] when there is no model, naming what there is;
/// [`EngineError::UnsupportedModel`] for an architecture that cannot be converted and has no
/// ONNX file; [`EngineError::InvalidModel`], [`EngineError::OutsideBundle`] and
/// [`EngineError::Io`] for files that are damaged, reach out of the bundle, or cannot be read.
pub fn from_folder(path: impl AsRef<Path>, options: &BundleOptions) -> Result<ModelBundle> {
    from_folder_within(path, options, &mut Budget::for_files(0))
}

/// [`from_folder`] within a budget, to which the sizes of the files are added.
///
/// # Errors
/// As [`from_folder`]; [`EngineError::OverBudget`]; [`EngineError::Cancelled`].
pub fn from_folder_within(
    path: impl AsRef<Path>,
    options: &BundleOptions,
    budget: &mut Budget,
) -> Result<ModelBundle> {
    load(Files::folder(path.as_ref())?, options, budget)
}

/// Loads a model from files wherever they are, by the names that they have in the bundle:
/// `model.safetensors`, `config.json`, `1_Pooling/config.json`.
///
/// # Errors
/// As [`from_folder`].
pub fn from_files(
    files: BTreeMap<String, PathBuf>,
    options: &BundleOptions,
) -> Result<ModelBundle> {
    from_files_within(files, options, &mut Budget::for_files(0))
}

/// [`from_files`] within a budget, to which the sizes of the files are added.
///
/// # Errors
/// As [`from_folder_within`].
pub fn from_files_within(
    files: BTreeMap<String, PathBuf>,
    options: &BundleOptions,
    budget: &mut Budget,
) -> Result<ModelBundle> {
    load(Files::named(files), options, budget)
}

/// Loads a model from bytes by the names that the files have in the bundle. `origin` is its name in messages.
///
/// # Errors
/// As [`from_folder`].
pub fn from_bytes(
    origin: &str,
    files: BTreeMap<String, Bytes>,
    options: &BundleOptions,
) -> Result<ModelBundle> {
    let files = files
        .into_iter()
        .map(|(name, bytes)| (name, bytes.into()))
        .collect();
    from_contents(origin, files, options)
}

/// The same for contents that need not be in memory. If a model is stored elsewhere, one tensor at a time is copied
/// from there, large tables in pieces.
///
/// # Errors
/// As [`from_folder`].
pub fn from_contents(
    origin: &str,
    files: BTreeMap<String, Content>,
    options: &BundleOptions,
) -> Result<ModelBundle> {
    from_contents_within(origin, files, options, &mut Budget::for_files(0))
}

/// [`from_contents`] within a budget, to which the sizes of the files are added.
///
/// # Errors
/// As [`from_folder_within`].
pub fn from_contents_within(
    origin: &str,
    files: BTreeMap<String, Content>,
    options: &BundleOptions,
    budget: &mut Budget,
) -> Result<ModelBundle> {
    load(Files::contents(origin, files), options, budget)
}

fn load(files: Files, options: &BundleOptions, budget: &mut Budget) -> Result<ModelBundle> {
    let files = files.mapped(!options.read_into_memory);
    let files = &files.remembering(options.identities.clone());
    // A named file may lie deeper than the list reaches.
    if let Some(name) = &options.onnx_file {
        return load_onnx(files, name, budget);
    }
    let wanted = if options.smallest {
        WeightFiles::Smallest
    } else {
        WeightFiles::Auto
    };
    // Side files are taken as they lie there; only the weights are chosen.
    let rules = FileSelection::files([""; 0])
        .weights(wanted)
        .accept_safetensors_if({
            let origin = files.origin.clone();
            move |config| family(&origin, config).map(|_| ())
        });
    let choice = match rules.next(files)? {
        Answer::Chosen(choice) => choice,
        Answer::Ask(questions) => {
            let paths: Vec<&str> = questions.iter().map(|asked| asked.path.as_str()).collect();
            return Err(EngineError::MissingFile {
                origin: files.origin.clone(),
                file: paths.join(", "),
                hint: "It went away while the model was read".into(),
            });
        }
    };
    let mut bundle = match &choice.weights {
        Weights::Onnx(name) => load_onnx(files, name, budget)?,
        checkpoint => {
            let [weighs_tokens, _] = HEADS_OF_M3;
            let wanted = Wanted {
                half: options.half,
                vocabulary: options.vocabulary && !files.has(weighs_tokens),
                logit_score: logit_score(files)?,
            };
            let config = in_folder(&choice.folder, CONFIG);
            load_safetensors(files, checkpoint, &config, wanted, budget)?
        }
    };
    as_in_root(&mut bundle.files, &choice.folder);
    Ok(bundle)
}

/// The tokens whose logits are the score, of a model with the step `LogitScore`.
fn logit_score(files: &Files) -> Result<Option<LogitScore>> {
    /// A step of `modules.json`.
    #[derive(Deserialize)]
    struct Module {
        #[serde(default)]
        path: String,
        #[serde(default)]
        r#type: String,
    }
    fn parsed<T: DeserializeOwned>(files: &Files, file: &str) -> Result<Option<T>> {
        let Some(bytes) = files.read(file)? else {
            return Ok(None);
        };
        let place = || format!("{}: {file}", files.origin);
        let parsed = serde_json::from_slice(&bytes);
        parsed.map_err(|error| EngineError::invalid_model(place(), error.to_string()))
    }
    let modules: Vec<Module> = parsed(files, MODULES)?.unwrap_or_default();
    let is_one = |module: &&Module| module.r#type.rsplit('.').next() == Some(LOGIT_SCORE);
    let Some(module) = modules.iter().find(is_one) else {
        return Ok(None);
    };
    let file = in_folder(module.path.trim_matches('/'), CONFIG);
    let missing = || EngineError::MissingFile {
        origin: files.origin.clone(),
        file: file.clone(),
        hint: "It says which tokens the answers are; modules.json names it".into(),
    };
    parsed(files, &file)?.ok_or_else(missing).map(Some)
}

/// A file in a folder, or in the root.
fn in_folder(folder: &str, file: &str) -> String {
    match folder {
        "" => file.to_owned(),
        folder => format!("{folder}/{file}"),
    }
}

/// Gives what lies in a transformer's own folder also the names that it would have in the root, where everybody looks for it.
fn as_in_root(files: &mut BTreeMap<String, Bytes>, folder: &str) {
    if folder.is_empty() {
        return;
    }
    let start = in_folder(folder, "");
    let own = files.iter().filter_map(|(name, content)| {
        let name = name.strip_prefix(&start)?;
        Some((name.to_owned(), content.clone()))
    });
    let own: Vec<_> = own.collect();
    for (name, content) in own {
        files.entry(name).or_insert(content);
    }
}

impl Known for Files {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn names(&self) -> Option<Vec<&str>> {
        Some(Self::names(self))
    }

    fn presence(&self, path: &str) -> Presence {
        if !self.has(path) {
            return Presence::Absent;
        }
        // What cannot be looked at is said when it is read.
        let bytes = self.size(path).ok();
        Presence::There { bytes }
    }

    fn content(&self, path: &str) -> Result<Option<Cow<'_, [u8]>>> {
        let content = self.read(path)?;
        Ok(content.map(|bytes| Cow::Owned(bytes.into())))
    }
}

fn load_onnx(files: &Files, name: &str, budget: &mut Budget) -> Result<ModelBundle> {
    let Some(file) = files.open(name)? else {
        let names = files.names();
        let onnx: Vec<&str> = names
            .into_iter()
            .filter(|name| name.ends_with(".onnx"))
            .collect();
        return Err(EngineError::MissingFile {
            origin: files.origin.clone(),
            file: name.to_owned(),
            hint: if onnx.is_empty() {
                "It has no ONNX file".into()
            } else {
                format!("Its ONNX files: {}", onnx.join(", "))
            },
        });
    };
    // Locations are relative to the model's file. Many tensors share one, so it is opened once.
    let folder = name.rfind('/').map_or("", |slash| &name[..=slash]);
    let opened: RefCell<BTreeMap<String, Content>> = RefCell::default();
    let resolve = |location: &str| {
        if let Some(file) = opened.borrow().get(location) {
            return Ok(External::Found(file.clone()));
        }
        let found = files.open_inside(&format!("{folder}{location}"))?;
        if let External::Found(file) = &found {
            opened
                .borrow_mut()
                .insert(location.to_owned(), file.clone());
        }
        Ok(found)
    };
    let origin = format!("{}/{name}", files.origin);
    let model = read(&origin, &file, &resolve, budget)?;
    Ok(ModelBundle {
        graph: model.graph,
        weights: model.weights,
        identity: model.identity,
        files: side_files(files, name, budget)?,
        model_file: name.to_owned(),
        origin: files.origin.clone(),
    })
}

fn load_safetensors(
    files: &Files,
    chosen: &Weights,
    config_file: &str,
    wanted: Wanted,
    budget: &mut Budget,
) -> Result<ModelBundle> {
    let name = chosen.file().unwrap_or(SAFETENSORS);
    let tensors = Arc::new(match chosen {
        Weights::Shards { index, tensors } => load_shards(files, index, tensors, budget)?,
        _ => {
            let file = files.open(name)?;
            let files_of_one = file.map(|file| (name.to_owned(), file));
            let files_of_one = files_of_one.into_iter().collect();
            TensorSet::from_files_within(&files.origin, files_of_one, budget)?
        }
    });
    let mut side = side_files(files, name, budget)?;
    let mut config = files.read(config_file)?.unwrap_or_default();
    if matches!(chosen, Weights::Static(_)) && !is_model2vec(&config) {
        config = Bytes::from_static(STATIC_CONFIG);
        side.insert(CONFIG.to_owned(), config.clone());
    }
    let pixels = files.read(PREPROCESSOR)?.unwrap_or_default();
    let converted = convert_within(&config, &pixels, Arc::clone(&tensors), wanted, budget)?;
    let parts: Vec<&str> = match chosen {
        Weights::Shards { tensors, .. } => shards_of(tensors).into_keys().collect(),
        _ => vec![name],
    };
    let hash = || tensors.identity_within(budget);
    let identity = files.identities.identity(&parts, hash)?;
    Ok(ModelBundle {
        graph: converted.graph,
        weights: converted.weights,
        identity,
        files: side,
        model_file: name.to_owned(),
        origin: files.origin.clone(),
    })
}

fn load_shards(
    files: &Files,
    index: &str,
    weight_map: &BTreeMap<String, String>,
    budget: &mut Budget,
) -> Result<TensorSet> {
    let place = format!("{}/{index}", files.origin);
    let mut opened = Vec::new();
    for (shard, tensor) in shards_of(weight_map) {
        match files.open_inside(shard)? {
            External::Found(file) => opened.push((shard.to_owned(), file)),
            External::Missing => {
                return Err(EngineError::MissingFile {
                    origin: files.origin.clone(),
                    file: shard.to_owned(),
                    hint: format!("{index} states that it holds {tensor}"),
                });
            }
            // A link that leads out of the folder.
            External::Outside => {
                return Err(EngineError::OutsideBundle {
                    tensor: tensor.to_owned(),
                    location: shard.to_owned(),
                });
            }
        }
    }
    let tensors = TensorSet::from_files_within(&files.origin, opened, budget)?;
    let mut listed = weight_map.iter();
    match listed.find(|(tensor, _)| tensors.get(tensor).is_none()) {
        None => Ok(tensors),
        Some((tensor, shard)) => Err(EngineError::invalid_model(
            place,
            format!("it states that {shard} holds {tensor}, but no shard does"),
        )),
    }
}

/// The small files that tell how to use a model: in the bundle's root and in module folders such
/// as `1_Pooling`, where dense layers have weights of their own.
fn side_files(
    files: &Files,
    model_file: &str,
    budget: &mut Budget,
) -> Result<BTreeMap<String, Bytes>> {
    let mut side = BTreeMap::new();
    let mut total = 0;
    for name in files.names() {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let text = matches!(
            ending,
            "json" | "txt" | "model" | "vocab" | "metadata" | "jinja"
        );
        let module = name.contains('/') && ending == "safetensors" && name != model_file;
        if !text && !module && !HEADS_OF_M3.contains(&name) {
            continue;
        }
        let size = files.size(name)?;
        if size > MAX_SIDE_BYTES {
            continue;
        }
        total += size;
        if total > MAX_SIDE_TOTAL {
            return Err(EngineError::InputTooLarge {
                asked: total,
                limit: MAX_SIDE_TOTAL,
                unit: "bytes of side files (is it the model's own folder?)",
            });
        }
        budget.add_file(size);
        let place = format_args!("{}/{name}", files.origin);
        budget.take(Resource::Bytes, size, place)?;
        if let Some(bytes) = files.read(name)? {
            side.insert(name.to_owned(), bytes);
        }
    }
    Ok(side)
}
