//! The files of a bundle before any of them is understood: a folder, files named one by one, or
//! contents. Names are paths inside the bundle with `/` between folders.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use isovec_engine::content::Content;
use isovec_engine::error::{EngineError, Result};

use super::mapped::Mapped;
use super::remembered::Identities;
use crate::onnx::read::{External, inside};

/// Files of at least this many bytes are mapped instead of read.
const MAP_MIN_BYTES: u64 = 1 << 20;

/// More entries than a model's folder has; past it somebody named the wrong folder.
const MAX_ENTRIES: usize = 10_000;

/// A bundle's files.
#[derive(Debug)]
pub(super) struct Files {
    /// What messages call the bundle.
    pub(super) origin: String,
    /// Whether large files are mapped.
    maps: bool,
    /// The hashes of weights that are kept.
    pub(super) identities: Identities,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Folder {
        root: PathBuf,
        /// Where links inside the folder may lead, without links themselves.
        within: Vec<PathBuf>,
        /// Files in the folder and one level below.
        listed: BTreeMap<String, PathBuf>,
    },
    Named(BTreeMap<String, PathBuf>),
    Contents(BTreeMap<String, Content>),
}

impl Files {
    /// A folder, or an entry of the Hugging Face cache (`models--owner--name`), of which the
    /// snapshot of `main` is taken.
    pub(super) fn folder(path: &Path) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|error| EngineError::io(path, error))?;
        if !metadata.is_dir() {
            return Err(EngineError::MissingFile {
                origin: path.display().to_string(),
                file: "folder with a model's files".into(),
                hint: "It is a file; name its folder, or hand its contents over by name".into(),
            });
        }
        let root = match snapshot(path)? {
            Some(snapshot) => snapshot,
            None => path.to_owned(),
        };
        let mut listed = BTreeMap::new();
        list(&root, "", &mut listed)?;
        Ok(Self {
            origin: root.display().to_string(),
            maps: true,
            identities: Identities::kept_in(None),
            place: Place::Folder {
                within: within(&root)?,
                root,
                listed,
            },
        })
    }

    /// Files wherever they are, by the names that they have in the bundle.
    pub(super) fn named(files: BTreeMap<String, PathBuf>) -> Self {
        let parents: Vec<_> = files.values().filter_map(|path| path.parent()).collect();
        let origin = match parents.as_slice() {
            [first, rest @ ..] if rest.iter().all(|parent| parent == first) => {
                first.display().to_string()
            }
            _ => "the set of named files".into(),
        };
        Self {
            origin,
            maps: true,
            identities: Identities::kept_in(None),
            place: Place::Named(files),
        }
    }

    /// The same, its files mapped or read.
    pub(super) fn mapped(mut self, maps: bool) -> Self {
        self.maps = maps;
        self
    }

    /// The same, the hashes of their weights kept in a folder.
    pub(super) fn remembering(mut self, identities: Option<PathBuf>) -> Self {
        self.identities = Identities::kept_in(identities);
        self
    }

    /// Files that are no files here.
    pub(super) fn contents(origin: &str, files: BTreeMap<String, Content>) -> Self {
        Self {
            origin: origin.to_owned(),
            maps: true,
            identities: Identities::kept_in(None),
            place: Place::Contents(files),
        }
    }

    /// The files' names, sorted; of a folder those in it and one level below.
    pub(super) fn names(&self) -> Vec<&str> {
        match &self.place {
            Place::Folder { listed: files, .. } | Place::Named(files) => {
                files.keys().map(String::as_str).collect()
            }
            Place::Contents(files) => files.keys().map(String::as_str).collect(),
        }
    }

    /// Whether there is a file of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        match &self.place {
            Place::Folder { listed: files, .. } | Place::Named(files) => files.contains_key(name),
            Place::Contents(files) => files.contains_key(name),
        }
    }

    /// A file's size in bytes.
    pub(super) fn size(&self, name: &str) -> Result<u64> {
        match &self.place {
            Place::Folder { listed: files, .. } | Place::Named(files) => {
                let Some(path) = files.get(name) else {
                    return Ok(0);
                };
                let metadata = fs::metadata(path).map_err(|error| EngineError::io(path, error))?;
                Ok(metadata.len())
            }
            Place::Contents(files) => Ok(files.get(name).map_or(0, |file| file.len() as u64)),
        }
    }

    /// A file's contents in memory, `None` when there is no such file. A large one is mapped.
    pub(super) fn read(&self, name: &str) -> Result<Option<Bytes>> {
        let content = self.open(name)?;
        content
            .map(|content| self.bytes(name, &content))
            .transpose()
    }

    /// A file's contents, `None` when there is no such file. A large one is mapped, and one that is
    /// kept elsewhere stays there.
    pub(super) fn open(&self, name: &str) -> Result<Option<Content>> {
        match &self.place {
            Place::Folder { root, listed, .. } if !listed.contains_key(name) => {
                // Deeper than the list reaches, when somebody names such a file.
                let path = inside(name).map(|name| root.join(name));
                let path = path.filter(|path| path.is_file());
                path.map(|path| self.open_at(name, &path)).transpose()
            }
            Place::Folder { listed: files, .. } | Place::Named(files) => files
                .get(name)
                .map(|path| self.open_at(name, path))
                .transpose(),
            Place::Contents(files) => Ok(files.get(name).cloned()),
        }
    }

    /// What `content`, which is the file of that name, holds.
    fn bytes(&self, name: &str, content: &Content) -> Result<Bytes> {
        let failed = |error| EngineError::io(format!("{}/{name}", self.origin), error);
        content.bytes().map_err(failed)
    }

    /// A file that the model's own files ask for, so not one that the caller trusts: links must
    /// not lead out of the bundle. `name` is a path without `..`.
    pub(super) fn open_inside(&self, name: &str) -> Result<External> {
        let Place::Folder { root, within, .. } = &self.place else {
            return Ok(self.open(name)?.map_or(External::Missing, External::Found));
        };
        let path = match root.join(name).canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(External::Missing),
            Err(error) => return Err(EngineError::io(root.join(name), error)),
        };
        if !within.iter().any(|folder| path.starts_with(folder)) {
            return Ok(External::Outside);
        }
        Ok(External::Found(self.open_at(name, &path)?))
    }

    /// A file's contents, mapped where it is large and the file system can.
    fn open_at(&self, name: &str, path: &Path) -> Result<Content> {
        let failed = |error| EngineError::io(path, error);
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let mut file = File::open(path).map_err(failed)?;
        self.identities.opened(name, &file);
        if self.maps
            && metadata.len() >= MAP_MIN_BYTES
            && let Ok(mapped) = Mapped::new(&file)
        {
            return Ok(Content::elsewhere(mapped));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes.into())
    }
}

/// The snapshot folder inside an entry of the Hugging Face cache; `None` for other folders.
fn snapshot(path: &Path) -> Result<Option<PathBuf>> {
    let snapshots = path.join("snapshots");
    if !snapshots.is_dir() || path.join("config.json").exists() {
        return Ok(None);
    }
    if let Ok(main) = fs::read_to_string(path.join("refs").join("main")) {
        let main = snapshots.join(main.trim());
        if main.is_dir() && main.parent() == Some(&snapshots) {
            return Ok(Some(main));
        }
    }
    let entries = fs::read_dir(&snapshots).map_err(|error| EngineError::io(&snapshots, error))?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    if folders.len() == 1 {
        return Ok(folders.pop());
    }
    let names: Vec<_> = folders
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy())
        .collect();
    Err(EngineError::MissingFile {
        origin: path.display().to_string(),
        file: "snapshot to choose (refs/main names none)".into(),
        hint: format!(
            "Name one of the folders in snapshots/: {}",
            names.join(", ")
        ),
    })
}

/// The folders in which a bundle's files may truly lie. The Hugging Face cache keeps contents in
/// `blobs`, and its snapshots are links to them.
fn within(root: &Path) -> Result<Vec<PathBuf>> {
    let real = root
        .canonicalize()
        .map_err(|error| EngineError::io(root, error))?;
    let entry = real
        .parent()
        .filter(|parent| parent.ends_with("snapshots"))
        .and_then(Path::parent);
    let is_cache = |entry: &&Path| {
        let name = entry.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("models--"))
    };
    let blobs = entry.filter(is_cache).map(|entry| entry.join("blobs"));
    let blobs = blobs.and_then(|blobs| blobs.canonicalize().ok());
    Ok([real].into_iter().chain(blobs).collect())
}

/// Lists a folder and the folders in it, hidden ones left out.
fn list(folder: &Path, prefix: &str, into: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let failed = |error| EngineError::io(folder, error);
    let entries = fs::read_dir(folder).map_err(failed)?;
    for (count, entry) in entries.enumerate() {
        let path = entry.map_err(failed)?.path();
        if count >= MAX_ENTRIES || into.len() >= MAX_ENTRIES {
            return Err(EngineError::InputTooLarge {
                asked: MAX_ENTRIES as u64 + 1,
                limit: MAX_ENTRIES as u64,
                unit: "files in a model's folder (is it the right folder?)",
            });
        }
        // Names that are not UTF-8 cannot be asked for, and no model has any.
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        // A link that leads nowhere counts as a file that is not there.
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        let name = format!("{prefix}{name}");
        if metadata.is_file() {
            into.insert(name, path);
        } else if metadata.is_dir() && prefix.is_empty() {
            list(&path, &format!("{name}/"), into)?;
        }
    }
    Ok(())
}
