//! The files of an export, which get their final names together or not at all.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use isovec_engine::fresh::Fresh;

use crate::error::{Error, Result};

/// A file that is complete, beside where it will be.
pub(super) struct Staged {
    fresh: Fresh,
    pub(super) path: PathBuf,
}

impl Staged {
    /// Brings a small file onto the disk.
    pub(super) fn new(path: PathBuf, content: &[u8]) -> Result<Self> {
        let write = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            let (fresh, mut file) = Fresh::file(&path)?;
            file.write_all(content)?;
            file.sync_all()?;
            Ok(fresh)
        };
        match write() {
            Ok(fresh) => Ok(Self { fresh, path }),
            Err(source) => Err(Error::io(path, source)),
        }
    }

    /// Where it is.
    pub(super) fn content(&self) -> &Path {
        self.fresh.path()
    }
}

impl From<isovec_model::onnx::Staged> for Staged {
    fn from(staged: isovec_model::onnx::Staged) -> Self {
        let (fresh, path) = staged.into_parts();
        Self { fresh, path }
    }
}

/// Sees to it that no other export writes into the folder, as long as it is held and where folders can be locked.
pub(super) fn alone(folder: &Path) -> Result<Option<File>> {
    let Ok(held) = File::open(folder) else {
        return Ok(None);
    };
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let why = "another export writes into this folder; wait for it, or name another one";
            Err(Error::io(
                folder,
                io::Error::new(ErrorKind::WouldBlock, why),
            ))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(held)),
    }
}

/// Gives files their names, the last one last. What they replace goes first, so that new and old files never lie side by
/// side as if they belonged together, and comes back where a new one could not take its place.
pub(super) fn place(staged: Vec<Staged>) -> Result<()> {
    let mut older = Vec::new();
    let placed = aside(&staged, &mut older).and_then(|()| {
        let mut placed = Vec::new();
        let done = staged.into_iter().try_for_each(|Staged { fresh, path }| {
            let replaced = fresh.replace(&path);
            replaced.map_err(|source| Error::io(&path, source))?;
            placed.push(path);
            Ok(())
        });
        if done.is_err() {
            for path in placed {
                let _ = fs::remove_file(path);
            }
        }
        done
    });
    if placed.is_err() {
        for (path, fresh) in older {
            let aside = fresh.keep();
            // What cannot come back stays where it is: it is the only copy.
            if let Err(error) = fs::rename(&aside, &path) {
                tracing::warn!(target: "isovec", "{} is now {}: {error}", path.display(), aside.display());
            }
        }
    }
    placed
}

/// Puts what the files replace under other names, in the order opposite to that in which the new ones come.
fn aside(staged: &[Staged], older: &mut Vec<(PathBuf, Fresh)>) -> Result<()> {
    for Staged { path, .. } in staged.iter().rev() {
        let moved = Fresh::make(path, |fresh| {
            // Exclusively made and then replaced: a rename alone would not say that the name is taken.
            File::create_new(fresh)?;
            fs::rename(path, fresh).inspect_err(|_| {
                let _ = fs::remove_file(fresh);
            })
        });
        match moved {
            Ok((fresh, ())) => older.push((path.clone(), fresh)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io(path, source)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_take_their_place_or_what_was_there_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let names = ["tokenizer.json", "config.json", "model.onnx"];
        let stage = |content: &str| -> Vec<Staged> {
            let stage = |name| Staged::new(folder.join(name), content.as_bytes()).unwrap();
            names.map(stage).into()
        };
        let there = || {
            let mut found: Vec<_> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            found
        };
        let read = |name| fs::read_to_string(folder.join(name)).unwrap();
        fs::write(folder.join("model.onnx"), "old").unwrap();
        place(stage("new")).unwrap();
        assert_eq!(names.map(read), ["new", "new", "new"]);
        assert_eq!(there(), ["config.json", "model.onnx", "tokenizer.json"]);

        // The second cannot take its place: it is gone.
        let staged = stage("newer");
        fs::remove_file(staged[1].content()).unwrap();
        let error = place(staged).unwrap_err();
        assert!(error.to_string().contains("config.json"), "{error}");
        assert_eq!(names.map(read), ["new", "new", "new"]);
        assert_eq!(there(), ["config.json", "model.onnx", "tokenizer.json"]);

        // A folder lies where a file is to be: nothing is touched.
        fs::remove_file(folder.join("tokenizer.json")).unwrap();
        fs::create_dir(folder.join("tokenizer.json")).unwrap();
        place(stage("newest")).unwrap_err();
        assert_eq!(read("model.onnx"), "new");
        assert_eq!(there(), ["config.json", "model.onnx", "tokenizer.json"]);
    }

    #[test]
    fn two_exports_into_one_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let held = alone(folder.path()).unwrap();
        let other = alone(folder.path());
        if held.is_some() && cfg!(unix) {
            let error = other.unwrap_err().to_string();
            assert!(error.contains("another export"), "{error}");
        }
        drop(held);
        alone(folder.path()).unwrap();
    }
}
