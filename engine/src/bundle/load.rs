//! From files to a bundle: which file is the model, and which belong to it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::files::Files;
use super::{BundleOptions, HALF_ONNX_FILE, ModelBundle, is_checkpoint, takes_half};
use crate::budget::{Budget, Resource};
use crate::content::Content;
use crate::convert::convert_within;
use crate::error::{EngineError, Result};
use crate::onnx::read::{External, inside, read};
use crate::safetensors::TensorSet;

/// What a checkpoint's architecture is read from.
const CONFIG: &str = "config.json";

/// A checkpoint in one file.
const SAFETENSORS: &str = "model.safetensors";

/// The list of a checkpoint's shards.
const SAFETENSORS_INDEX: &str = "model.safetensors.index.json";

/// Where exporters put the graph, the likelier place first.
const ONNX_FILES: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// The largest side file that is taken along. XLM-R's tokenizer has 17 MB.
const MAX_SIDE_BYTES: u64 = 64 << 20;

/// All side files together.
const MAX_SIDE_TOTAL: u64 = 256 << 20;

impl ModelBundle {
    /// Loads a model from a folder, or from an entry of the Hugging Face cache, of which the
    /// snapshot of `main` is taken.
    ///
    /// Without an explicit [`BundleOptions::onnx_file`] the safetensors checkpoint is taken if
    /// its architecture can be converted, else `model.onnx`, else `onnx/model.onnx`.
    ///
    /// Large files are mapped, not read: they must not be changed in place while the bundle or
    /// anything made from it lives. Replace them by renaming, as downloads do.
    ///
    /// # Errors
    /// [`EngineError::MissingFile`] when there is no model, naming what there is;
    /// [`EngineError::UnsupportedModel`] for an architecture that cannot be converted and has no
    /// ONNX file; [`EngineError::InvalidModel`], [`EngineError::OutsideBundle`] and
    /// [`EngineError::Io`] for files that are damaged, reach out of the bundle, or cannot be read.
    pub fn from_folder(path: impl AsRef<Path>, options: &BundleOptions) -> Result<Self> {
        Self::from_folder_within(path, options, &mut Budget::for_files(0))
    }

    /// [`from_folder`](Self::from_folder) within a budget, to which the sizes of the files are added.
    ///
    /// # Errors
    /// As [`from_folder`](Self::from_folder); [`EngineError::OverBudget`]; [`EngineError::Cancelled`].
    pub fn from_folder_within(
        path: impl AsRef<Path>,
        options: &BundleOptions,
        budget: &mut Budget,
    ) -> Result<Self> {
        load(Files::folder(path.as_ref())?, options, budget)
    }

    /// Loads a model from files wherever they are, by the names that they have in the bundle:
    /// `model.safetensors`, `config.json`, `1_Pooling/config.json`.
    ///
    /// # Errors
    /// As [`from_folder`](Self::from_folder).
    pub fn from_files(files: BTreeMap<String, PathBuf>, options: &BundleOptions) -> Result<Self> {
        Self::from_files_within(files, options, &mut Budget::for_files(0))
    }

    /// [`from_files`](Self::from_files) within a budget, to which the sizes of the files are added.
    ///
    /// # Errors
    /// As [`from_folder_within`](Self::from_folder_within).
    pub fn from_files_within(
        files: BTreeMap<String, PathBuf>,
        options: &BundleOptions,
        budget: &mut Budget,
    ) -> Result<Self> {
        load(Files::named(files), options, budget)
    }

    /// Loads a model from bytes by the names that the files have in the bundle. `origin` is what
    /// messages call it.
    ///
    /// # Errors
    /// As [`from_folder`](Self::from_folder).
    pub fn from_bytes(
        origin: &str,
        files: BTreeMap<String, Bytes>,
        options: &BundleOptions,
    ) -> Result<Self> {
        let files = files
            .into_iter()
            .map(|(name, bytes)| (name, bytes.into()))
            .collect();
        Self::from_contents(origin, files, options)
    }

    /// The same for contents that need not be in memory. Of a model that is kept elsewhere
    /// one tensor at a time is copied from there, large tables in pieces.
    ///
    /// # Errors
    /// As [`from_folder`](Self::from_folder).
    pub fn from_contents(
        origin: &str,
        files: BTreeMap<String, Content>,
        options: &BundleOptions,
    ) -> Result<Self> {
        Self::from_contents_within(origin, files, options, &mut Budget::for_files(0))
    }

    /// [`from_contents`](Self::from_contents) within a budget, to which the sizes of the files are added.
    ///
    /// # Errors
    /// As [`from_folder_within`](Self::from_folder_within).
    pub fn from_contents_within(
        origin: &str,
        files: BTreeMap<String, Content>,
        options: &BundleOptions,
        budget: &mut Budget,
    ) -> Result<Self> {
        load(Files::contents(origin, files), options, budget)
    }
}

fn load(files: Files, options: &BundleOptions, budget: &mut Budget) -> Result<ModelBundle> {
    let files = &files.mapped(!options.read_into_memory);
    if let Some(name) = &options.onnx_file {
        return load_onnx(files, name, budget);
    }
    if options.smallest && files.has(HALF_ONNX_FILE) {
        let mut checkpoint = None;
        for name in files.names().into_iter().filter(|name| is_checkpoint(name)) {
            checkpoint = Some(checkpoint.unwrap_or(0) + files.size(name)?);
        }
        let mut half = 0;
        for name in files.names() {
            if name.starts_with(HALF_ONNX_FILE) {
                half += files.size(name)?;
            }
        }
        if takes_half(half, checkpoint) {
            return load_onnx(files, HALF_ONNX_FILE, budget);
        }
    }
    let onnx = ONNX_FILES.into_iter().find(|name| files.has(name));
    let has_tensors = files.has(SAFETENSORS) || files.has(SAFETENSORS_INDEX);
    match (has_tensors, files.read(CONFIG)?, onnx) {
        (true, Some(config), None) => load_safetensors(files, &config, budget),
        (true, Some(config), Some(onnx)) => match load_safetensors(files, &config, budget) {
            Err(EngineError::UnsupportedModel { reason, .. }) => {
                tracing::info!(
                    origin = files.origin,
                    reason,
                    "the checkpoint cannot be converted; taking {onnx}"
                );
                load_onnx(files, onnx, budget)
            }
            loaded => loaded,
        },
        (_, _, Some(onnx)) => load_onnx(files, onnx, budget),
        (true, None, None) => Err(EngineError::MissingFile {
            origin: files.origin.clone(),
            file: CONFIG.into(),
            hint: "A safetensors checkpoint needs it: it says which architecture the tensors \
                   belong to"
                .into(),
        }),
        (false, _, None) => Err(no_model(files)),
    }
}

/// Says what is there instead of a model.
fn no_model(files: &Files) -> EngineError {
    let names = files.names();
    let with = |ending: &str| {
        let found = names.iter().filter(|name| name.ends_with(ending));
        found.copied().collect::<Vec<_>>().join(", ")
    };
    let onnx = with(".onnx");
    let pickled = with(".bin");
    let hint = if !onnx.is_empty() {
        format!("There are other ONNX files ({onnx}); name the one to use (`onnx_file`)")
    } else if !pickled.is_empty() {
        format!("Pickled checkpoints ({pickled}) are not read; save the model as safetensors")
    } else if names.is_empty() {
        "There are no files at all".into()
    } else {
        let shown: Vec<&str> = names.iter().take(8).copied().collect();
        let more = if names.len() > shown.len() {
            ", ..."
        } else {
            ""
        };
        format!("There is: {}{more}", shown.join(", "))
    };
    EngineError::MissingFile {
        origin: files.origin.clone(),
        file: format!("{SAFETENSORS} with {CONFIG}, {}", ONNX_FILES.join(" or ")),
        hint,
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
        files: side_files(files, budget)?,
        model_file: name.to_owned(),
        origin: files.origin.clone(),
    })
}

fn load_safetensors(files: &Files, config: &Bytes, budget: &mut Budget) -> Result<ModelBundle> {
    let (model_file, tensors) = match files.open(SAFETENSORS)? {
        Some(file) => {
            let files_of_one = vec![(SAFETENSORS.to_owned(), file)];
            let tensors = TensorSet::from_files_within(&files.origin, files_of_one, budget)?;
            (SAFETENSORS, tensors)
        }
        None => (SAFETENSORS_INDEX, load_shards(files, budget)?),
    };
    let tensors = Arc::new(tensors);
    let converted = convert_within(config, Arc::clone(&tensors), budget)?;
    Ok(ModelBundle {
        graph: converted.graph,
        weights: converted.weights,
        identity: tensors.identity_within(budget)?,
        files: side_files(files, budget)?,
        model_file: model_file.to_owned(),
        origin: files.origin.clone(),
    })
}

/// The part of a shard index that matters.
#[derive(serde::Deserialize)]
struct ShardIndex {
    /// Tensor to file.
    weight_map: BTreeMap<String, String>,
}

fn load_shards(files: &Files, budget: &mut Budget) -> Result<TensorSet> {
    let place = format!("{}/{SAFETENSORS_INDEX}", files.origin);
    let index = files.read(SAFETENSORS_INDEX)?.unwrap_or_default();
    budget.add_file(index.len() as u64);
    // An entry of a map, with its two texts, for every six bytes.
    budget.take(Resource::Bytes, index.len() as u64 * 16, &place)?;
    let index: ShardIndex = serde_json::from_slice(&index)
        .map_err(|error| EngineError::invalid_model(place.clone(), error.to_string()))?;
    let mut shards: BTreeMap<&str, &str> = BTreeMap::new();
    for (tensor, shard) in &index.weight_map {
        shards.entry(shard).or_insert(tensor);
    }
    let mut opened = Vec::new();
    for (shard, tensor) in shards {
        let found = match inside(shard) {
            Some(name) => files.open_inside(&name)?,
            None => External::Outside,
        };
        match found {
            External::Found(file) => opened.push((shard.to_owned(), file)),
            External::Missing => {
                return Err(EngineError::MissingFile {
                    origin: files.origin.clone(),
                    file: shard.to_owned(),
                    hint: format!("{SAFETENSORS_INDEX} says that it holds {tensor}"),
                });
            }
            External::Outside => {
                return Err(EngineError::OutsideBundle {
                    tensor: tensor.to_owned(),
                    location: shard.to_owned(),
                });
            }
        }
    }
    let tensors = TensorSet::from_files_within(&files.origin, opened, budget)?;
    let mut listed = index.weight_map.iter();
    match listed.find(|(tensor, _)| tensors.get(tensor).is_none()) {
        None => Ok(tensors),
        Some((tensor, shard)) => Err(EngineError::invalid_model(
            place,
            format!("it says that {shard} holds {tensor}, which no shard does"),
        )),
    }
}

/// The small files that tell how to use a model: in the bundle's root and in module folders such
/// as `1_Pooling`, where dense layers have weights of their own.
fn side_files(files: &Files, budget: &mut Budget) -> Result<BTreeMap<String, Bytes>> {
    let mut side = BTreeMap::new();
    let mut total = 0;
    for name in files.names() {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let text = matches!(ending, "json" | "txt" | "model" | "vocab");
        let module = name.contains('/') && ending == "safetensors";
        if !text && !module {
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
