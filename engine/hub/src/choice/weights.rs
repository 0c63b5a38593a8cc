//! Which files hold the weights.

use std::collections::BTreeMap;

use isovec_engine::error::{EngineError, Result};
use serde::Deserialize;

use super::describe::{of_static, optional, routed_folder};
use super::rooted::Rooted;
use super::{
    CONFIG, FileSelection, Known, Need, Presence, Stop, WeightFiles, all_there, ask, content,
    described, is_there,
};
use crate::paths::path_fault;

/// A checkpoint in one file.
pub const SAFETENSORS: &str = "model.safetensors";
/// The list of a checkpoint's shards.
pub const SAFETENSORS_INDEX: &str = "model.safetensors.index.json";
/// Where exporters put the graph, and the order in which it is looked for: `isovec export` writes
/// the first, also beside what was published under the second.
pub const ONNX_FILES: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// The name under which exporters publish a model in 16-bit floats. (`model_quantized.onnx`,
/// `model_int8.onnx` and others like them are not looked for: by the same custom their activations
/// are quantised as well, which costs a model its meaning. Measured with all-MiniLM-L6-v2: a cosine
/// of 0.861 for the worst text, where 16-bit floats have 0.99999.)
pub const HALF_ONNX_FILE: &str = "onnx/model_fp16.onnx";

/// More shards, and more files of external data, than a model without a list of its files has.
/// Each is asked for.
const MAX_UNLISTED: usize = 512;

/// The files of the weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weights {
    /// None were wanted.
    #[default]
    None,
    /// This ONNX file.
    Onnx(String),
    /// A checkpoint in one file.
    Checkpoint(String),
    /// The table of sentence-transformers' `StaticEmbedding`, whose architecture `modules.json` states.
    Static(String),
    /// A checkpoint in several files.
    Shards {
        /// The index.
        index: String,
        /// The file that each tensor is in.
        tensors: BTreeMap<String, String>,
    },
}

impl Weights {
    /// The file that the model is read from: the graph, the checkpoint or its index.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Onnx(file) | Self::Checkpoint(file) | Self::Static(file) => Some(file),
            Self::Shards { index, .. } => Some(index),
        }
    }
}

/// The part of a shard index that matters.
#[derive(Deserialize)]
struct ShardIndex {
    /// Tensor to file.
    weight_map: BTreeMap<String, String>,
}

/// What is there of a checkpoint.
enum Size {
    Absent,
    /// It exists, but its size is unknown.
    Unsaid,
    Bytes(u64),
}

type Found = (Weights, Vec<String>);

/// The files of the weights, and the folder that the transformer has for itself.
pub(super) struct Chosen {
    pub(super) weights: Weights,
    pub(super) files: Vec<String>,
    pub(super) folder: String,
}

impl From<Found> for Chosen {
    fn from((weights, files): Found) -> Self {
        Self {
            weights,
            files,
            folder: String::new(),
        }
    }
}

impl FileSelection {
    pub(super) fn choose_weights(&self, known: &dyn Known) -> Result<Chosen, Stop> {
        match &self.weights {
            WeightFiles::Skip => Ok((Weights::None, Vec::new()).into()),
            WeightFiles::Onnx(file) => {
                if !is_there(known, file, Need::Taken)? {
                    return Err(no_such_onnx(known, file).into());
                }
                onnx(known, file).map(Chosen::from)
            }
            WeightFiles::Auto | WeightFiles::Smallest => match static_table(known) {
                Ok(Some(found)) => Ok(found.into()),
                Ok(None) => self.of_transformer(known),
                Err(Stop::Ask(mut asked)) => {
                    // Most models are no such table: what they need is found out at the same time.
                    if let Err(Stop::Ask(more)) = self.usual(known) {
                        asked.extend(more);
                    }
                    Err(Stop::Ask(asked))
                }
                Err(refused) => Err(refused),
            },
        }
    }

    fn of_transformer(&self, known: &dyn Known) -> Result<Chosen, Stop> {
        let folder = routed_folder(known)?;
        if folder.is_empty() {
            return self.usual(known).map(Chosen::from);
        }
        let inside = Rooted::new(known, &folder);
        let found = self.usual(&inside).map_err(|stop| inside.outside(stop))?;
        Ok(Chosen {
            weights: inside.weights(found.0),
            files: inside.files(found.1),
            folder: folder.clone(),
        })
    }

    fn usual(&self, known: &dyn Known) -> Result<Found, Stop> {
        if self.weights == WeightFiles::Smallest && half_is_smallest(known)? {
            return onnx(known, HALF_ONNX_FILE);
        }
        self.auto(known)
    }

    fn auto(&self, known: &dyn Known) -> Result<Found, Stop> {
        let absent = |path| known.presence(path) == Presence::Absent;
        let mut refused = None;
        if !(absent(SAFETENSORS) && absent(SAFETENSORS_INDEX)) {
            match self.check_config(known)? {
                Ok(()) => {
                    if is_there(known, SAFETENSORS, Need::Taken)? {
                        let chosen = Weights::Checkpoint(SAFETENSORS.to_owned());
                        return Ok((chosen, vec![SAFETENSORS.to_owned()]));
                    }
                    if let Some(found) = shards(known)? {
                        return Ok(found);
                    }
                }
                Err(error) if makes_way(&error) => refused = Some(error),
                Err(error) => {
                    if has_checkpoint(known)? {
                        return Err(error.into());
                    }
                }
            }
        }
        for file in ONNX_FILES {
            if is_there(known, file, Need::Taken)? {
                if let Some(error) = refused {
                    tracing::info!(
                        origin = known.origin(),
                        %error,
                        "the checkpoint cannot be converted; taking {file}"
                    );
                }
                return onnx(known, file);
            }
        }
        match refused {
            Some(error) if has_checkpoint(known)? => Err(error.into()),
            _ => Err(no_weights(known).into()),
        }
    }

    /// Whether a checkpoint can be converted, by `config.json`. The inner error says why not.
    fn check_config(&self, known: &dyn Known) -> Result<Result<(), EngineError>, Stop> {
        let Some(check) = &self.check else {
            return Ok(Ok(()));
        };
        let Some(config) = content(known, CONFIG)? else {
            return Ok(Err(EngineError::MissingFile {
                origin: known.origin().to_owned(),
                file: CONFIG.to_owned(),
                hint: "A safetensors checkpoint needs it: it says which architecture the tensors \
                       belong to"
                    .to_owned(),
            }));
        };
        Ok(check(&config))
    }
}

/// Whether ONNX is taken where a checkpoint has this error. A damaged `config.json` has not.
fn makes_way(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::UnsupportedModel { .. } | EngineError::MissingFile { .. }
    )
}

/// Whether there is a checkpoint, which is not taken.
fn has_checkpoint(known: &dyn Known) -> Result<bool, Stop> {
    Ok(
        is_there(known, SAFETENSORS, Need::Size)?
            || is_there(known, SAFETENSORS_INDEX, Need::Size)?,
    )
}

/// The table of a model that is sentence-transformers' `StaticEmbedding`. It needs no `config.json`.
fn static_table(known: &dyn Known) -> Result<Option<Found>, Stop> {
    let Some(file) = of_static(known, SAFETENSORS)? else {
        return Ok(None);
    };
    let found = is_there(known, &file, Need::Taken)?;
    Ok(found.then(|| (Weights::Static(file.clone()), vec![file])))
}

/// An ONNX file, which is there, and the files of its external data.
fn onnx(known: &dyn Known, file: &str) -> Result<Found, Stop> {
    let mut files = external_data(known, file, Need::Taken)?;
    files.push(file.to_owned());
    Ok((Weights::Onnx(file.to_owned()), files))
}

/// What lies beside an ONNX file under the usual names of external data: `model.onnx_data`,
/// `model.onnx_data_1`, `model.onnx.data`.
fn external_data(known: &dyn Known, onnx: &str, need: Need) -> Result<Vec<String>, Stop> {
    if let Some(names) = known.names() {
        let is_data = |path: &str| {
            path.strip_prefix(onnx).is_some_and(|rest| {
                !rest.contains('/') && (rest.starts_with("_data") || rest.starts_with(".data"))
            })
        };
        let data = names.into_iter().filter(|path| is_data(path));
        return Ok(data.map(str::to_owned).collect());
    }
    let first = [format!("{onnx}.data"), format!("{onnx}_data")];
    let mut found = optional(known, &first, need)?;
    if found.contains(&first[1]) {
        for number in 1..MAX_UNLISTED {
            let path = format!("{onnx}_data_{number}");
            if !is_there(known, &path, need)? {
                break;
            }
            found.push(path);
        }
    }
    Ok(found)
}

/// The shards that the index names, and the index; `None` where there is none.
fn shards(known: &dyn Known) -> Result<Option<Found>, Stop> {
    let Some((tensors, mut files)) = shard_index(known)? else {
        return Ok(None);
    };
    if known.names().is_none() && files.len() > MAX_UNLISTED {
        return Err(EngineError::InputTooLarge {
            asked: files.len() as u64,
            limit: MAX_UNLISTED as u64,
            unit: "shards of a model without a list of its files",
        }
        .into());
    }
    files = all_there(known, &files, Need::Taken, |shard| {
        let mut named = tensors.iter().filter(|(_, file)| *file == shard);
        let tensor = named.next().map_or("a tensor", |(tensor, _)| tensor);
        EngineError::MissingFile {
            origin: known.origin().to_owned(),
            file: shard.to_owned(),
            hint: format!(
                "{SAFETENSORS_INDEX} states that it holds {tensor}; the model is not complete"
            ),
        }
    })?;
    files.push(SAFETENSORS_INDEX.to_owned());
    let index = SAFETENSORS_INDEX.to_owned();
    Ok(Some((Weights::Shards { index, tensors }, files)))
}

/// Tensor to shard, and the shards, as the index has them; `None` where there is none.
type Index = (BTreeMap<String, String>, Vec<String>);

/// The shards that an index names, each with the first of its tensors. `weight_map` has the shard of each tensor.
pub fn shards_of(weight_map: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let mut shards = BTreeMap::new();
    for (tensor, shard) in weight_map {
        shards.entry(shard.as_str()).or_insert(tensor.as_str());
    }
    shards
}

fn shard_index(known: &dyn Known) -> Result<Option<Index>, Stop> {
    let Some(bytes) = content(known, SAFETENSORS_INDEX)? else {
        return Ok(None);
    };
    let invalid = |detail: String| {
        EngineError::invalid_model(format!("{}/{SAFETENSORS_INDEX}", known.origin()), detail)
    };
    let index: ShardIndex =
        serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    let shards = shards_of(&index.weight_map);
    if shards.is_empty() {
        return Err(invalid("it names no shard".to_owned()).into());
    }
    let outside = shards.iter().find(|(shard, _)| path_fault(shard).is_some());
    if let Some((shard, tensor)) = outside {
        return Err(EngineError::OutsideBundle {
            tensor: (*tensor).to_owned(),
            location: (*shard).to_owned(),
        }
        .into());
    }
    let shards = shards.into_keys().map(str::to_owned).collect();
    Ok(Some((index.weight_map, shards)))
}

/// Whether there is a 16-bit ONNX file that is smaller than the checkpoint: one in 16 bits is as
/// small, and has the identity that others will compare with. Where nobody says how large files
/// are, there is nothing to go by.
fn half_is_smallest(known: &dyn Known) -> Result<bool, Stop> {
    let half = match size(known, HALF_ONNX_FILE, Need::Likely)? {
        Size::Bytes(bytes) => bytes,
        Size::Absent | Size::Unsaid => return Ok(false),
    };
    let checkpoint = match size(known, SAFETENSORS, Need::Size)? {
        Size::Absent => match shard_index(known)? {
            None => Size::Absent,
            Some((_, shards)) => sum(known, &shards)?,
        },
        one => one,
    };
    let data = sum(known, &external_data(known, HALF_ONNX_FILE, Need::Size)?)?;
    Ok(match (data, checkpoint) {
        (Size::Unsaid, _) | (_, Size::Unsaid) => false,
        (_, Size::Absent) => true,
        (Size::Absent, Size::Bytes(checkpoint)) => half < checkpoint,
        (Size::Bytes(data), Size::Bytes(checkpoint)) => half.saturating_add(data) < checkpoint,
    })
}

fn size(known: &dyn Known, path: &str, need: Need) -> Result<Size, Stop> {
    Ok(match known.presence(path) {
        Presence::Unknown => return ask(path, need),
        Presence::Absent => Size::Absent,
        Presence::There { bytes: None } => Size::Unsaid,
        Presence::There { bytes: Some(bytes) } => Size::Bytes(bytes),
    })
}

/// The size of several files together. One that is missing is said where they are taken.
fn sum(known: &dyn Known, paths: &[String]) -> Result<Size, Stop> {
    let mut total = None;
    for path in paths {
        match size(known, path, Need::Size)? {
            Size::Unsaid => return Ok(Size::Unsaid),
            Size::Absent => {}
            Size::Bytes(bytes) => total = Some(total.unwrap_or(0u64).saturating_add(bytes)),
        }
    }
    Ok(total.map_or(Size::Absent, Size::Bytes))
}

fn no_such_onnx(known: &dyn Known, file: &str) -> EngineError {
    let hint = match known.names() {
        Some(_) => match described(known, ".onnx", "").as_str() {
            "" => "It has no ONNX file".to_owned(),
            others => format!("Its ONNX files: {others}"),
        },
        None => "Check the name (`onnx_file`)".to_owned(),
    };
    EngineError::MissingFile {
        origin: known.origin().to_owned(),
        file: file.to_owned(),
        hint,
    }
}

/// Says what is there instead of weights.
fn no_weights(known: &dyn Known) -> EngineError {
    let onnx = described(known, ".onnx", "");
    let pickled = described(known, ".bin", "");
    let hint = if known.names().is_none() {
        "Choose a model that publishes one of them, or name the ONNX file to use (`onnx_file`)"
            .to_owned()
    } else if !onnx.is_empty() {
        format!("There are other ONNX files ({onnx}); name the one to use (`onnx_file`)")
    } else if !pickled.is_empty() {
        format!(
            "Pickled checkpoints ({pickled}) are not read; save the model again as safetensors, \
             or export it to ONNX"
        )
    } else {
        match described(known, "", "").as_str() {
            "" => "There are no files at all".to_owned(),
            all => format!("There is: {all}"),
        }
    };
    EngineError::MissingFile {
        origin: known.origin().to_owned(),
        file: format!(
            "{SAFETENSORS} with {CONFIG}, {SAFETENSORS_INDEX}, {}",
            ONNX_FILES.join(" or ")
        ),
        hint,
    }
}
