//! The cache on disk, as Python's `huggingface_hub` lays it out, so that each finds what the
//! other has fetched:
//!
//! ```text
//! <cache>/models--<organisation>--<name>/
//!     blobs/<etag>                  a file's bytes, by checksum
//!     blobs/<etag>.incomplete       the beginning of one; a later fetch goes on from there
//!     refs/<revision>               the commit that a branch or tag stood for
//!     snapshots/<commit>/<path>     relative links into blobs
//!     .isovec/<commit>.json         isovec's own: the list of files, which never changes
//! <cache>/.locks/models--<organisation>--<name>/<etag>.lock
//! ```
//!
//! A blob gets its name by renaming, after its checksum was verified. A link is created after its blob, and a ref
//! after all of its links. Every visible entry is therefore complete, even after an interruption.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use isovec_engine::cancel::Cancel;
use isovec_engine::error::{EngineError, Result};
use isovec_engine::fresh::Fresh;
use isovec_engine::maybe_send::EngineFuture;

use super::client::INCOMPLETE;
use super::download::Sink;
use super::id::{ModelId, Revision, is_commit};
use super::listing::{Listing, RepoFile};

/// How often a lock that another process holds is looked at.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// One model's part of the cache. Paths and entity tags given to it must have been checked.
#[derive(Debug, Clone)]
pub struct RepoCache {
    folder: PathBuf,
    locks: PathBuf,
    symlinks: bool,
}

impl RepoCache {
    /// The part of `cache_dir` that is this model's; nothing is created yet.
    pub fn new(cache_dir: &Path, id: &ModelId, symlinks: bool) -> Self {
        let mut name = "models".to_owned();
        for part in id.parts() {
            name.push_str("--");
            name.push_str(part);
        }
        Self {
            locks: cache_dir.join(".locks").join(&name),
            folder: cache_dir.join(name),
            symlinks,
        }
    }

    /// The folder of a commit's files.
    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.folder.join("snapshots").join(commit)
    }

    /// Where a file of a commit is, or would be.
    pub fn pointer(&self, commit: &str, path: &str) -> PathBuf {
        join(self.snapshot(commit), path)
    }

    /// The size of a cached file; `None` when it is not there.
    pub fn size(&self, commit: &str, path: &str) -> Option<u64> {
        file_size(&self.pointer(commit, path))
    }

    /// The commit that a revision stood for when it was last fetched.
    pub fn read_ref(&self, revision: &Revision) -> Option<String> {
        let path = join(self.folder.join("refs"), revision.as_str());
        let text = fs::read_to_string(path).ok()?;
        let commit = text.trim();
        is_commit(commit).then(|| commit.to_owned())
    }

    /// Stores the commit of a revision.
    ///
    /// # Errors
    /// [`EngineError::Io`], naming the file.
    pub fn write_ref(&self, revision: &Revision, commit: &str) -> Result<()> {
        if revision.commit().is_some() || self.read_ref(revision).as_deref() == Some(commit) {
            return Ok(());
        }
        let path = join(self.folder.join("refs"), revision.as_str());
        write_atomically(&path, commit.as_bytes())
    }

    /// The list of a commit's files: isovec's copy, or the one that Python keeps.
    pub fn read_listing(&self, commit: &str) -> Option<Listing> {
        [".isovec", "trees"].iter().find_map(|folder| {
            let path = self.folder.join(folder).join(format!("{commit}.json"));
            let json = fs::read(&path).ok()?;
            Listing::from_stored(commit, &json)
                .inspect_err(|why| {
                    tracing::warn!(path = %path.display(), why, "a cached file list is ignored");
                })
                .ok()
        })
    }

    /// Keeps the list of a commit's files.
    ///
    /// # Errors
    /// [`EngineError::Io`], naming the file.
    pub fn write_listing(&self, listing: &Listing) -> Result<()> {
        let path = self
            .folder
            .join(".isovec")
            .join(format!("{}.json", listing.commit));
        let json = listing.to_stored();
        if fs::read(&path).is_ok_and(|old| old == json) {
            return Ok(());
        }
        write_atomically(&path, &json)
    }

    /// A list made from what is in a snapshot's folder; `None` where there is no such folder.
    pub fn scan(&self, commit: &str) -> Option<Listing> {
        let root = self.snapshot(commit);
        let mut files = std::collections::BTreeMap::new();
        let mut folders = vec![(root.clone(), String::new(), 0)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else {
                if depth == 0 {
                    return None;
                }
                continue;
            };
            for entry in entries.flatten() {
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let path = format!("{prefix}{name}");
                // Follows links; one that leads nowhere is no file.
                match fs::metadata(entry.path()) {
                    Ok(meta) if meta.is_file() => {
                        let file = RepoFile {
                            size: Some(meta.len()),
                            checksum: None,
                        };
                        files.insert(path, file);
                    }
                    Ok(meta) if meta.is_dir() && depth < 8 => {
                        folders.push((entry.path(), format!("{path}/"), depth + 1));
                    }
                    _ => {}
                }
            }
        }
        Some(Listing {
            commit: commit.to_owned(),
            files,
        })
    }

    /// Whether Python noted that the commit has no such file.
    pub fn is_known_absent(&self, commit: &str, path: &str) -> bool {
        join(self.folder.join(".no_exist").join(commit), path).exists()
    }

    /// The blob of that entity tag, if it is there in full.
    pub fn has_blob(&self, etag: &str, size: u64) -> bool {
        file_size(&self.blob(etag)) == Some(size)
    }

    /// Waits until no other thread or process fetches the same blob. Blocks the thread.
    ///
    /// # Errors
    /// [`EngineError::Io`] when the lock's file cannot be made; [`EngineError::Cancelled`].
    pub fn lock(&self, etag: &str, cancel: &Cancel) -> Result<BlobLock> {
        let path = self.locks.join(format!("{etag}.lock"));
        create_folder(&self.locks)?;
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| storage_error(&path, error))?;
        let mut waited = false;
        loop {
            cancel.check()?;
            match file.try_lock() {
                Ok(()) => return Ok(BlobLock { _file: file }),
                Err(TryLockError::WouldBlock) => {
                    if !waited {
                        tracing::info!(lock = %path.display(), "another fetch of the same file is under way; waiting");
                        waited = true;
                    }
                    std::thread::sleep(LOCK_POLL);
                }
                // Some network file systems have no locks. The checksum still guards the
                // result; two processes may fetch the same bytes.
                Err(TryLockError::Error(error)) => {
                    tracing::warn!(lock = %path.display(), %error, "this file system has no locks");
                    return Ok(BlobLock { _file: file });
                }
            }
        }
    }

    /// Opens the file that a blob is fetched into, with the part from earlier attempts.
    ///
    /// # Errors
    /// [`EngineError::Io`], naming the file.
    pub fn open_incomplete(&self, etag: &str) -> Result<FileSink> {
        create_folder(&self.folder.join("blobs"))?;
        let path = self.incomplete(etag);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|error| storage_error(&path, error))?;
        let held = file
            .metadata()
            .map_err(|error| storage_error(&path, error))?
            .len();
        Ok(FileSink { path, file, held })
    }

    /// Turns the fetched and verified file into the blob.
    ///
    /// # Errors
    /// [`EngineError::Io`], naming the file.
    pub fn complete(&self, etag: &str, sink: FileSink) -> Result<()> {
        sink.file
            .sync_all()
            .map_err(|error| storage_error(&sink.path, error))?;
        // Closed first: some systems do not rename an open file.
        drop(sink.file);
        let blob = self.blob(etag);
        fs::rename(&sink.path, &blob).map_err(|error| storage_error(&blob, error))
    }

    /// Makes a blob visible as a file of a commit: a relative link, a hard link where that
    /// fails, or else a copy.
    ///
    /// # Errors
    /// [`EngineError::Io`], naming the file.
    pub fn link(&self, etag: &str, commit: &str, path: &str) -> Result<()> {
        let pointer = self.pointer(commit, path);
        let blob = self.blob(etag);
        if let Some(folder) = pointer.parent() {
            create_folder(folder)?;
        }
        let made = self.symlink(&pointer, etag, path).or_else(|| {
            Fresh::make(&pointer, |fresh| fs::hard_link(&blob, fresh))
                .ok()
                .map(|(fresh, ())| fresh)
        });
        let made = match made {
            Some(fresh) => Ok(fresh),
            None => copy(&blob, &pointer),
        };
        made.and_then(|fresh| fresh.replace(&pointer))
            .map_err(|error| storage_error(&pointer, error))
    }

    /// A relative link to a blob, beside the file that it is to be, where there are such links.
    fn symlink(&self, pointer: &Path, etag: &str, path: &str) -> Option<Fresh> {
        if !self.symlinks {
            return None;
        }
        let mut target: PathBuf = "..".into();
        for _ in 0..=path.matches('/').count() {
            target.push("..");
        }
        let target = target.join("blobs").join(etag);
        let made = Fresh::make(pointer, |fresh| symlink::symlink_file(&target, fresh));
        made.ok().map(|(fresh, ())| fresh)
    }

    fn blob(&self, etag: &str) -> PathBuf {
        self.folder.join("blobs").join(etag)
    }

    fn incomplete(&self, etag: &str) -> PathBuf {
        self.folder
            .join("blobs")
            .join(format!("{etag}{INCOMPLETE}"))
    }
}

/// Keeps other fetches of a blob waiting until dropped.
#[derive(Debug)]
pub struct BlobLock {
    // The lock is the system's and goes when the file is closed.
    _file: File,
}

/// A blob under way.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    file: File,
    held: u64,
}

impl FileSink {
    fn at(&mut self, offset: u64) -> io::Result<&mut File> {
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(&mut self.file)
    }

    fn failed<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|error| storage_error(&self.path, error))
    }
}

impl Sink for FileSink {
    fn held(&mut self) -> EngineFuture<'_, u64> {
        Box::pin(async { Ok(self.held) })
    }

    fn read_at(&mut self, offset: u64) -> EngineFuture<'_, Bytes> {
        Box::pin(async move {
            let mut buffer = Vec::new();
            let read = self
                .at(offset)
                .and_then(|file| file.take(1 << 20).read_to_end(&mut buffer));
            self.failed(read)?;
            Ok(buffer.into())
        })
    }

    fn append(&mut self, chunk: Bytes) -> EngineFuture<'_, ()> {
        Box::pin(async move {
            let held = self.held;
            let written = self.at(held).and_then(|file| file.write_all(&chunk));
            self.failed(written)?;
            self.held += chunk.len() as u64;
            Ok(())
        })
    }

    fn clear(&mut self) -> EngineFuture<'_, ()> {
        Box::pin(async {
            if self.held > 0 {
                let cleared = self.file.set_len(0);
                self.failed(cleared)?;
                self.held = 0;
            }
            Ok(())
        })
    }
}

/// Joins a checked path with `/` between its parts.
fn join(mut folder: PathBuf, path: &str) -> PathBuf {
    folder.extend(path.split('/'));
    folder
}

fn file_size(path: &Path) -> Option<u64> {
    fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .map(|meta| meta.len())
}

fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| storage_error(folder, error))
}

/// A copy of a blob, beside the file that it is to be.
fn copy(blob: &Path, pointer: &Path) -> io::Result<Fresh> {
    let (fresh, mut file) = Fresh::file(pointer)?;
    let copied = File::open(blob).and_then(|mut blob| io::copy(&mut blob, &mut file));
    // Closed before the copy is renamed or, where it failed, removed.
    drop(file);
    copied.map(|_| fresh)
}

fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let write = || {
        let (fresh, mut file) = Fresh::file(path)?;
        let written = file.write_all(bytes);
        drop(file);
        written.and_then(|()| fresh.replace(path))
    };
    write().map_err(|error| storage_error(path, error))
}

/// An I/O error of the cache, with what to do about it.
fn storage_error(path: &Path, error: io::Error) -> EngineError {
    use io::ErrorKind::{
        NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let hint = match error.kind() {
        StorageFull | QuotaExceeded => {
            "free some space, or set HF_HOME to a folder on another disk"
        }
        PermissionDenied | ReadOnlyFilesystem | NotADirectory => {
            "set HF_HOME to a folder that can be written"
        }
        _ => {
            return EngineError::Io {
                path: path.to_owned(),
                source: Arc::new(error),
            };
        }
    };
    EngineError::io(
        path,
        io::Error::new(error.kind(), format!("{error}; {hint}")),
    )
}
