//! Vectors of texts in a folder that several processes may share: a file each, named by its key.
//!
//! A file is written beside its place and renamed, so that nobody ever reads a half; its time of modification is when it was
//! last used. Nothing is synced to the disk: what a crash leaves behind is damaged or not there, and the checksum tells.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use isovec_engine::cancel::Cancel;

use super::kept::write_whole;
use super::native::{cache_dir, in_slices};
use crate::cache::{Entry, Key, ShelfCounts};

/// The ending of a file that is complete.
const ENDING: &str = "safetensors";
/// Files that were used less long ago are not marked as used again: the order only has to be about right.
const FRESH: Duration = Duration::from_secs(60);
/// The part of the limit that one process may write before it looks at what others have written.
const UNSEEN: u64 = 16;
/// The part of the limit that is left free when room is made, so that it is not made for every file.
const SPARE: u64 = 10;

/// The folder, as one process sees it. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Shelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    limit: u64,
    dim: usize,
    seen: Mutex<Option<Seen>>,
    evictions: AtomicU64,
    rejected: AtomicU64,
    failures: AtomicU64,
}

/// What the folder held when it was last looked through, and what was written since.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    entries: u64,
    bytes: u64,
    since: u64,
}

impl Shelf {
    /// Why it is where it is, where nobody says.
    pub(crate) const WHY_THERE: &str = "isovec's cache folder";

    /// The shelf, or why there is none.
    pub(crate) fn open(
        folder: Option<&Path>,
        limit: u64,
        dim: usize,
    ) -> Result<Self, &'static str> {
        let folder = match folder {
            Some(folder) => folder.to_path_buf(),
            None => cache_dir()
                .ok_or("this system names no folder for caches; set embedding_cache.folder")?
                .join("embeddings"),
        };
        Ok(Self(Arc::new(Inner {
            folder,
            limit,
            dim,
            seen: Mutex::default(),
            evictions: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })))
    }

    /// Where it is.
    pub(crate) fn place(&self) -> String {
        self.0.folder.display().to_string()
    }

    /// The entries of these keys, as far as they are there.
    pub(crate) async fn read(&self, keys: Vec<Key>) -> Vec<Option<Entry>> {
        let (inner, count) = (Arc::clone(&self.0), keys.len());
        let read = move |keys: &[Key]| Ok(keys.iter().map(|key| inner.read(*key)).collect());
        let found = in_slices("reading kept embeddings", keys, Cancel::new(), read).await;
        found.unwrap_or_else(|error| {
            self.0.failed(&error);
            vec![None; count]
        })
    }

    /// Keeps entries.
    pub(crate) async fn write(&self, entries: Vec<(Key, Entry)>) {
        let inner = Arc::clone(&self.0);
        let write = move |entries: &[(Key, Entry)]| {
            inner.write(entries);
            Ok(Vec::<()>::new())
        };
        let written = in_slices("keeping embeddings", entries, Cancel::new(), write).await;
        if let Err(error) = written {
            self.0.failed(&error);
        }
    }

    /// What is there and what was done.
    pub(crate) fn counts(&self) -> ShelfCounts {
        let seen = self.0.seen().unwrap_or_default();
        ShelfCounts {
            entries: seen.entries,
            bytes: seen.bytes,
            evictions: self.0.evictions.load(Relaxed),
            rejected: self.0.rejected.load(Relaxed),
            failures: self.0.failures.load(Relaxed),
        }
    }
}

impl Inner {
    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A folder for the first byte of the key: file systems do not like a million files in one.
    fn path(&self, key: Key) -> PathBuf {
        let name = key.hex();
        let mut path = self.folder.join(&name[..2]);
        path.push(format!("{name}.{ENDING}"));
        path
    }

    fn read(&self, key: Key) -> Option<Entry> {
        let path = self.path(key);
        let bytes = match self.used(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.failed(&format_args!("{}: {error}", path.display()));
                return None;
            }
        };
        let entry = Entry::parse(&bytes, key, self.dim);
        if entry.is_none() {
            tracing::warn!(target: "isovec", "{} is damaged, and is made anew", path.display());
            self.rejected.fetch_add(1, Relaxed);
            if fs::remove_file(&path).is_ok()
                && let Some(seen) = &mut *self.seen()
            {
                seen.entries = seen.entries.saturating_sub(1);
                seen.bytes = seen.bytes.saturating_sub(bytes.len() as u64);
            }
        }
        entry
    }

    /// A file's bytes, and marks it as used.
    fn used(&self, path: &Path) -> io::Result<Vec<u8>> {
        // Marking needs the right to write on some systems; where there is none, the order is that of writing.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .or_else(|_| File::open(path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let now = SystemTime::now();
        let last = file.metadata().and_then(|about| about.modified());
        if last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age > FRESH)) {
            let _ = file.set_modified(now);
        }
        Ok(bytes)
    }

    fn write(&self, entries: &[(Key, Entry)]) {
        // What there is has to be known before there is more.
        if self.seen().is_none() {
            self.look();
        }
        for (key, entry) in entries {
            let path = self.path(*key);
            // Another process may have been quicker.
            if path.exists() {
                continue;
            }
            let bytes = entry.to_bytes(*key);
            if let Err(error) = write_whole(&path, &bytes) {
                self.failed(&format_args!("{}: {error}", path.display()));
                return;
            }
            if let Some(seen) = &mut *self.seen() {
                seen.entries += 1;
                seen.bytes += bytes.len() as u64;
                seen.since += bytes.len() as u64;
            }
        }
        let due = self
            .seen()
            .is_some_and(|seen| seen.bytes > self.limit || seen.since > self.limit / UNSEEN);
        if due {
            self.look();
        }
    }

    /// Looks through the folder, and makes room where there is more than allowed: what was not used for longest goes.
    fn look(&self) {
        let mut files = Vec::new();
        for shard in subfolders(&self.folder) {
            for entry in fs::read_dir(shard).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(about) = entry.metadata() else {
                    continue;
                };
                let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if path.extension().is_some_and(|ending| ending == ENDING) {
                    files.push((used, about.len(), path));
                } else if used.elapsed().is_ok_and(|age| age > FRESH) {
                    // Left behind by a process that was ended while it wrote.
                    let _ = fs::remove_file(path);
                }
            }
        }
        let mut seen = Seen {
            entries: files.len() as u64,
            bytes: files.iter().map(|(_, bytes, _)| bytes).sum(),
            since: 0,
        };
        if seen.bytes > self.limit {
            files.sort();
            for (_, bytes, path) in files {
                if seen.bytes <= self.limit - self.limit / SPARE {
                    break;
                }
                // Another process may be making room as well.
                if fs::remove_file(path).is_ok() {
                    self.evictions.fetch_add(1, Relaxed);
                }
                seen.entries -= 1;
                seen.bytes -= bytes;
            }
        }
        *self.seen() = Some(seen);
    }

    /// A disk that fails costs time, and nobody's vectors.
    fn failed(&self, why: &dyn std::fmt::Display) {
        if self.failures.fetch_add(1, Relaxed) == 0 {
            tracing::warn!(target: "isovec", "embeddings cannot be kept on the disk: {why}");
        } else {
            tracing::debug!(target: "isovec", "{why}");
        }
    }
}

/// The folders that files are in: two hex digits each, whatever else lies beside them.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_shard = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.len() == 2 && u8::from_str_radix(name, 16).is_ok())
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(is_shard).collect()
}
