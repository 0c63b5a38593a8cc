//! Files that are there whole, or as they were.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{CliError, Result};

/// Writes a file in place of an older one, so that at any moment the one or the other is on the disk: beside it first,
/// and renamed when all of it is there. Where that fails, the older one stays and nothing lies beside it.
pub(crate) fn write(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let new = beside(path);
    let done = File::create(&new)
        .and_then(|mut file| {
            write(&mut file)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&new, path));
    if let Err(error) = done {
        fs::remove_file(&new).ok();
        return Err(CliError::io(path.display().to_string())(error));
    }
    // The new name too, where folders can be synchronised at all.
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        folder.sync_all().ok();
    }
    Ok(())
}

/// Whether a file could be written there, so that it is known before minutes are spent. What is there stays.
pub(crate) fn check(path: &Path) -> Result<()> {
    let new = beside(path);
    let checked = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        _ => File::create(&new).map(drop),
    };
    fs::remove_file(&new).ok();
    checked.map_err(CliError::io(path.display().to_string()))
}

fn beside(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    PathBuf::from(new)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_breaks_in_the_middle_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        write(&path, |file| file.write_all(b"whole")).unwrap();
        let full = |file: &mut File| {
            file.write_all(b"ha")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = write(&path, full).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn a_place_is_checked_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        check(&path).unwrap();
        assert!(names(folder.path()).is_empty());
        fs::write(&path, "old").unwrap();
        check(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(check(folder.path()).is_err());
        assert!(check(&folder.path().join("none/a.json")).is_err());
    }
}
