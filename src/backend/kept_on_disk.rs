//! What was found out at an earlier start: files in isovec's cache folder.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::native::cache_dir;

/// Names that are tried for a file that is being written.
const TRIES: usize = 8;

/// What was kept of a kind under a name, if it was.
pub(crate) async fn recall(kind: &str, name: &str) -> Option<Vec<u8>> {
    fs::read(file(kind, name)?).ok()
}

/// Keeps it, whole or not at all; a failure costs the next start its time, nothing else.
pub(crate) async fn keep(kind: &str, name: &str, bytes: &[u8]) {
    if let Some(path) = file(kind, name)
        && let Err(error) = write_whole(&path, bytes)
    {
        tracing::debug!(target: "isovec", "{}: {error}", path.display());
    }
}

fn file(kind: &str, name: &str) -> Option<PathBuf> {
    Some(cache_dir()?.join(kind).join(name))
}

/// Takes the place of what is there at once, so that whoever reads meanwhile reads one or the other.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    // Processes that share a folder need not have ids of their own: containers each begin with 1. A hasher's keys are random.
    let (partial, mut file) = create_beside(path, || RandomState::new().hash_one(path))?;
    let written = file.write_all(bytes);
    // Some systems rename no file that is open.
    drop(file);
    let written = written.and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// A file beside `path` that was not there before: neither another's is cut off, nor is a link followed.
fn create_beside(path: &Path, mut number: impl FnMut() -> u64) -> io::Result<(PathBuf, File)> {
    let mut tries = 1;
    loop {
        let partial = path.with_extension(format!("{:016x}.partial", number()));
        match File::create_new(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                tries += 1;
            }
            created => return created.map(|file| (partial, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kind").join("name.json");
        for bytes in [&b"first"[..], b"second"] {
            write_whole(&path, bytes).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        let beside = fs::read_dir(folder.path().join("kind")).unwrap();
        assert_eq!(beside.count(), 1);
        // A folder in its place: nothing can be written, and nothing is left.
        fs::create_dir(folder.path().join("taken")).unwrap();
        write_whole(&folder.path().join("taken"), b"third").unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_name_that_another_has_taken_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("name.json");
        let (taken, _) = create_beside(&path, || 1).unwrap();
        fs::write(&taken, "another's").unwrap();
        let mut numbers = 1..;
        let (own, _) = create_beside(&path, || numbers.next().unwrap()).unwrap();
        assert_eq!(own, folder.path().join("name.0000000000000002.partial"));
        assert_eq!(fs::read(&taken).unwrap(), b"another's");
        // Where all are taken there is an error, and no end of trying.
        let error = create_beside(&path, || 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&taken).unwrap(), b"another's");
    }
}
