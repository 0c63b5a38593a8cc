//! The cache of measurements on disk: files in isovec's cache folder.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use isovec_engine::fresh::Fresh;

use super::native::cache_dir;

/// The cached entry of a kind and a name, if there is one.
pub(crate) async fn recall(kind: &str, name: &str) -> Option<Vec<u8>> {
    fs::read(file(kind, name)?).ok()
}

/// Caches an entry, completely or not at all. A failure only makes the next start slower.
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

/// Replaces a file atomically: readers see the old or the new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let (fresh, mut file) = Fresh::file(path)?;
    let written = file.write_all(bytes);
    // Some systems rename no file that is open.
    drop(file);
    written.and_then(|()| fresh.replace(path))
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
}
