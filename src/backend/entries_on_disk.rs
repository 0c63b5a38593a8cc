//! Vectors of texts in a folder that several processes may share: a file each, named by its key.
//!
//! A file is written beside its place and renamed, so no reader ever sees half of it. Its modification time is the
//! time of its last use. Files with other names are left alone. Nothing is synced to the disk: after a crash a file
//! may be damaged or missing, and the checksum detects it.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use isovec_engine::cancel::Cancel;
use isovec_engine::fresh::ENDING as PARTIAL;

use super::cache::write_whole;
use super::native::{cache_dir, in_slices};
use crate::cache::{Entry, Key, ShelfCounts};

/// The ending of a file that is complete.
const ENDING: &str = "safetensors";
/// Hex digits of a key.
const DIGITS: usize = 64;
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
    /// Bytes of a file.
    size: u64,
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
            size: Self::size(dim),
            seen: Mutex::default(),
            evictions: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        })))
    }

    /// What an entry with vectors of so many components takes.
    pub(crate) fn size(dim: usize) -> u64 {
        let entry = Entry {
            vector: vec![0.0; dim].into(),
            tokens: 0,
            truncated: false,
        };
        entry.to_bytes(Key([0; 32])).len() as u64
    }

    /// Where it is.
    pub(crate) fn place(&self) -> String {
        self.0.folder.display().to_string()
    }

    /// The entries of these keys, as far as they are there.
    pub(crate) async fn read(&self, keys: Vec<Key>) -> Vec<Option<Entry>> {
        let (inner, count) = (Arc::clone(&self.0), keys.len());
        let read = move |keys: &[Key]| Ok(keys.iter().map(|key| inner.read(*key)).collect());
        let found = in_slices("reading cached embeddings", keys, Cancel::new(), read).await;
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
        let (bytes, size) = match self.used(&path) {
            Ok(used) => used,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.failed_at(&path, &error);
                return None;
            }
        };
        let entry = Entry::parse(&bytes, key, self.dim);
        if entry.is_none() {
            tracing::warn!(target: "isovec", "{} is damaged, and is computed again", path.display());
            self.rejected.fetch_add(1, Relaxed);
            if fs::remove_file(&path).is_ok()
                && let Some(seen) = &mut *self.seen()
            {
                seen.entries = seen.entries.saturating_sub(1);
                seen.bytes = seen.bytes.saturating_sub(size);
            }
        }
        entry
    }

    /// A file's bytes, no more than show that it is too long, and its length; marks it as used. What is no file has no bytes.
    fn used(&self, path: &Path) -> io::Result<(Vec<u8>, u64)> {
        // Before it is opened: opening a pipe waits for whoever is to write into it, and a link may lead to what never ends.
        let about = fs::symlink_metadata(path)?;
        if !about.is_file() {
            return Ok((Vec::new(), about.len()));
        }
        // Marking needs the right to write on some systems; where there is none, the order is that of writing.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .or_else(|_| File::open(path))?;
        let mut bytes = Vec::new();
        file.by_ref().take(self.size + 1).read_to_end(&mut bytes)?;
        let now = SystemTime::now();
        let last = about.modified();
        if last.is_ok_and(|last| now.duration_since(last).is_ok_and(|age| age > FRESH)) {
            let _ = file.set_modified(now);
        }
        Ok((bytes, about.len()))
    }

    fn write(&self, entries: &[(Key, Entry)]) {
        // What there is has to be known before there is more.
        if self.seen().is_none() {
            self.look();
        }
        // A folder that cannot be listed would grow past any bound.
        if self.seen().is_none() {
            return;
        }
        for (key, entry) in entries {
            let path = self.path(*key);
            // Another process may have been quicker.
            if path.exists() {
                continue;
            }
            let bytes = entry.to_bytes(*key);
            if let Err(error) = write_whole(&path, &bytes) {
                self.failed_at(&path, &error);
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

    /// Looks through the folder, and makes room where there is more than allowed: what was not used for longest goes. A folder
    /// that cannot be listed is not known any more.
    fn look(&self) {
        let shards = match shards(&self.folder) {
            Ok(shards) => shards,
            Err(error) => {
                self.failed_at(&self.folder, &error);
                *self.seen() = None;
                return;
            }
        };
        let mut files = Vec::new();
        for (digits, shard) in shards {
            if let Err(error) = list(&shard, &digits, &mut files) {
                self.failed_at(&shard, &error);
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
                match fs::remove_file(&path) {
                    Ok(()) => {
                        self.evictions.fetch_add(1, Relaxed);
                    }
                    // Another process may be making room as well.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        self.failed_at(&path, &error);
                        continue;
                    }
                }
                seen.entries -= 1;
                seen.bytes -= bytes;
            }
        }
        *self.seen() = Some(seen);
    }

    fn failed_at(&self, path: &Path, error: &io::Error) {
        self.failed(&format_args!("{}: {error}", path.display()));
    }

    /// A disk that fails costs time, and nobody's vectors.
    fn failed(&self, why: &dyn std::fmt::Display) {
        if self.failures.fetch_add(1, Relaxed) == 0 {
            tracing::warn!(target: "isovec", "embeddings cannot be cached on disk: {why}");
        } else {
            tracing::debug!(target: "isovec", "{why}");
        }
    }
}

/// The folders that files are in, by the two hex digits that they are named, whatever else lies beside them. None where the
/// folder itself is not there yet.
fn shards(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut shards = Vec::new();
    for entry in entries(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && name.len() == 2
            && is_hex(&name)
        {
            shards.push((name, entry.path()));
        }
    }
    Ok(shards)
}

/// Adds the complete files of a shard, each with when it was used and its bytes, and clears away what was left behind.
fn list(shard: &Path, digits: &str, files: &mut Vec<(SystemTime, u64, PathBuf)>) -> io::Result<()> {
    for entry in entries(shard)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(ending) = name.to_str().and_then(|name| own_ending(name, digits)) else {
            continue;
        };
        let about = match entry.metadata() {
            Ok(about) => about,
            // Another process has taken it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if ending == ENDING {
            files.push((used, about.len(), entry.path()));
        } else if used.elapsed().is_ok_and(|age| age > FRESH) {
            // Left behind by a process that was ended while it wrote.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// What is in a folder; nothing where there is none.
fn entries(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<DirEntry>>> {
    let found = match fs::read_dir(folder) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(found.into_iter().flatten())
}

/// The ending of a file that was written here, by its name in the shard of these digits: the folder may be another
/// program's as well, which names its own folders in the same way.
fn own_ending<'n>(name: &'n str, digits: &str) -> Option<&'n str> {
    let (key, rest) = name.split_once('.')?;
    let is_key = key.len() == DIGITS && is_hex(key) && key.starts_with(digits);
    let ending = rest.rsplit_once('.').map_or(rest, |(_, ending)| ending);
    let is_ours = rest == ENDING || ending == PARTIAL;
    (is_key && is_ours).then_some(ending)
}

fn is_hex(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_of_a_file_is_read_than_shows_that_it_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::open(Some(folder.path()), 1 << 20, 3).unwrap();
        let path = folder.path().join("long");
        fs::write(&path, vec![0u8; 1 << 20]).unwrap();
        let (bytes, size) = shelf.0.used(&path).unwrap();
        assert_eq!((bytes.len() as u64, size), (Shelf::size(3) + 1, 1 << 20));
    }

    #[test]
    fn a_file_is_ours_by_its_whole_name_only() {
        let key = "ab".repeat(32);
        for (name, ending) in [
            (format!("{key}.safetensors"), Some(ENDING)),
            (format!("{key}.0123456789abcdef.partial"), Some(PARTIAL)),
            (
                format!("{key}.safetensors.0123456789abcdef.partial"),
                Some(PARTIAL),
            ),
            (key.clone(), None),
            (format!("{key}.json"), None),
            (format!("{key}.part.safetensors"), None),
            (format!("{key}0.safetensors"), None),
            (format!("{}.safetensors", &key[..62]), None),
            (format!("cd{}.safetensors", &key[2..]), None),
            (format!("{}.safetensors", key.to_uppercase()), None),
            ("notes.1.partial".into(), None),
        ] {
            assert_eq!(own_ending(&name, "ab"), ending, "{name}");
        }
    }
}
