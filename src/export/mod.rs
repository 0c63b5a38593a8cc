//! A model as a folder that needs no conversion: one ONNX file with its pooling head in it, and the
//! small files that an embedder reads beside it.

mod place;

use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use isovec_engine::EngineError;
use isovec_engine::cancel::Cancel;
use isovec_engine::description::describe;
use isovec_engine::fingerprint::Precision;
use isovec_engine::maybe_send::BoxFuture;
use isovec_model::convert::Half;
use isovec_model::onnx;
use isovec_model::precision::widened;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use self::place::Staged;
use crate::backend;
use crate::config::EmbeddingConfig;
use crate::error::{Error, Result};
use crate::model::{OnProgress, Output, Prepared, Purpose, Watch, prepare, resolve};
use crate::source::ModelSource;

/// Options of an export, and of loading its source.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Put the pooling head into the graph, whose output is then `sentence_embedding`; otherwise
    /// it is `last_hidden_state`.
    pub head: bool,
    watch: Watch,
}

impl Default for ExportOptions {
    fn default() -> Self {
        Self {
            head: true,
            watch: Watch::default(),
        }
    }
}

impl ExportOptions {
    /// Chooses whether the head is put in.
    #[must_use]
    pub fn with_head(mut self, head: bool) -> Self {
        self.head = head;
        self
    }

    /// Reports how far loading the source has come.
    #[must_use]
    pub fn with_progress(mut self, progress: impl OnProgress + 'static) -> Self {
        self.watch.progress = Some(Arc::new(progress));
        self
    }

    /// Stops the export when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.watch.cancel = cancel;
        self
    }
}

/// The written files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The files: those beside the model, the model, and past 2 GiB its weights.
    pub files: Vec<PathBuf>,
    /// Components of a vector, where a head was put in and the graph says it.
    pub dimension: Option<usize>,
    /// The hash of the original weights, which the file remembers.
    pub weights_identity: String,
    /// How the weights are stored: as [`Dtype`](crate::Dtype) asked, unless the model's own file
    /// stores them in fewer bits, or nothing could be stored smaller without losing too much.
    pub precision: Precision,
    /// Bytes of the weights in f32, as engines hold them.
    pub weights_bytes: u64,
    /// Bytes of all the files.
    pub bytes: u64,
}

/// The exported graph's name in its folder.
const MODEL_FILE: &str = "model.onnx";

/// The file that says what else there is.
const CONFIG_FILE: &str = "config.json";

/// Where a file of the model goes. Names that came with a model's bytes must not lead out of the
/// folder.
fn inside(folder: &Path, name: &str, origin: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    if path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Ok(folder.join(path));
    }
    Err(EngineError::invalid_model(
        origin,
        format!("its file {name:?} would be written outside the folder"),
    )
    .into())
}

/// A folder's `config.json`, with a list of its other files under `isovec.files`: over HTTP there is
/// no other, and nothing else that says whether one arrived whole. What is no object stays as it is.
fn with_list(config: &[u8], list: Map<String, Value>) -> Vec<u8> {
    let Ok(Value::Object(mut keys)) = serde_json::from_slice(config) else {
        return config.to_vec();
    };
    keys.insert("isovec".into(), json!({ "files": list }));
    format!("{:#}\n", Value::Object(keys)).into_bytes()
}

/// Files by their names, and the bytes of all of them.
struct List {
    entries: Map<String, Value>,
    bytes: u64,
}

/// The list: files' bytes and SHA-256, by where they will be; each is read where it is.
fn list(files: &[&Staged], folder: &Path) -> Result<List> {
    let mut list = Map::new();
    let mut all = 0;
    for file in files {
        let path = &file.path;
        let name = path.strip_prefix(folder).unwrap_or(path);
        let name = name.to_string_lossy().replace('\\', "/");
        let (bytes, hash) = sha256(file.content()).map_err(|source| Error::io(path, source))?;
        all += bytes;
        list.insert(name, json!({ "bytes": bytes, "sha256": hash }));
    }
    list.sort_keys();
    Ok(List {
        entries: list,
        bytes: all,
    })
}

/// A file's bytes, and their hash as hexadecimal digits.
fn sha256(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut part = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match file.read(&mut part)? {
            0 => break,
            read => {
                hash.update(&part[..read]);
                bytes += read as u64;
            }
        }
    }
    let digits = hash.finalize();
    let digits = digits.iter().map(|byte| format!("{byte:02x}"));
    Ok((bytes, digits.collect()))
}

/// Writes a model into a folder, which is made if it is not there: `model.onnx`, which takes its
/// name when all the rest has one, and the tokenizer and settings beside it, so that the folder
/// loads as a model, in a page as well: its `config.json` lists the files, so that a page asks for
/// none that is not there. The same model and settings give the same bytes on every run.
///
/// # Errors
/// As [`Embedder::load`](crate::Embedder::load) for reading; [`Error::Engine`] for writing.
pub fn export(
    source: impl Into<ModelSource>,
    folder: impl AsRef<Path>,
    config: EmbeddingConfig,
    options: ExportOptions,
) -> BoxFuture<'static, Result<Exported>> {
    let (source, folder) = (source.into(), folder.as_ref().to_path_buf());
    Box::pin(async move {
        let config = config.build()?;
        let cancel = options.watch.cancel.clone();
        let (source, _) = resolve(source, &config, &options.watch).await?.split();
        let purpose = Purpose {
            output: match options.head {
                true => Output::Vectors,
                false => Output::AsFile,
            },
            keep: None,
            half: Half::default(),
        };
        let prepared = backend::offload("reading the model", async move {
            cancel.check()?;
            prepare(source, &config, purpose, &cancel).await
        })
        .await?;
        options.watch.cancel.check()?;
        fs::create_dir_all(&folder).map_err(|source| Error::io(&folder, source))?;
        let _alone = place::alone(&folder)?;
        write(&prepared, &folder).await
    })
}

/// Writes a model into a folder that is there.
pub(crate) async fn write(prepared: &Prepared, folder: &Path) -> Result<Exported> {
    let bundle = &prepared.bundle;
    // Everything is on the disk before anything has a name: where there is no room, what was there stays.
    let mut staged = Vec::new();
    for (name, content) in bundle.files.iter().filter(|(name, _)| *name != CONFIG_FILE) {
        let path = inside(folder, name, &bundle.origin)?;
        staged.push(Staged::new(path, content)?);
    }
    let model = onnx::stage(bundle, &folder.join(MODEL_FILE)).await?;
    let model: Vec<Staged> = model.into_iter().map(Staged::from).collect();
    // The model itself before its weights, where those are a file of their own.
    let described: Vec<&Staged> = staged.iter().chain(model.iter().rev()).collect();
    let mut listed = list(&described, folder)?;
    let mut files: Vec<PathBuf> = described.iter().map(|staged| staged.path.clone()).collect();
    if let Some(config) = bundle.files.get(CONFIG_FILE) {
        let path = folder.join(CONFIG_FILE);
        let content = with_list(config, listed.entries);
        listed.bytes += content.len() as u64;
        files.push(path.clone());
        staged.push(Staged::new(path, &content)?);
    }
    // The model last: a folder without one is none.
    staged.extend(model);
    place::place(staged)?;
    Ok(Exported {
        files,
        dimension: prepared.head.dim,
        weights_identity: bundle.identity.0.clone(),
        precision: prepared.stored.precision,
        weights_bytes: describe(&widened(bundle)).weights_bytes,
        bytes: listed.bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_of_the_files_that_are_there_and_replaces_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let files = [("model.onnx", "abc"), ("1_Pooling/config.json", "")];
        let files = files
            .map(|(name, content)| Staged::new(folder.join(name), content.as_bytes()).unwrap());
        let list = list(&files.each_ref(), folder).unwrap().entries;
        let config = br#"{"hidden_size": 8, "isovec": {"files": ["gone.onnx"]}}"#;
        let written = with_list(config, list.clone());
        let read: Value = serde_json::from_slice(&written).unwrap();
        // The hashes are those of FIPS 180-4's own examples.
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let listed = json!({ "files": {
            "1_Pooling/config.json": { "bytes": 0, "sha256": empty },
            "model.onnx": { "bytes": 3, "sha256": abc },
        } });
        assert_eq!(read, json!({ "hidden_size": 8, "isovec": listed }));
        assert_eq!(with_list(&written, list.clone()), written);
        assert_eq!(with_list(b"[1", list), b"[1");
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        let folder = Path::new("out");
        let place = |name| inside(folder, name, "bytes");
        assert_eq!(
            place("1_Pooling/config.json").unwrap(),
            folder.join("1_Pooling").join("config.json")
        );
        for name in ["../config.json", "a/../../b.json", "/etc/passwd", "./a/.."] {
            let error = place(name).unwrap_err();
            assert_eq!(error.kind(), "InvalidModel", "{name}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
