//! Replaces a file completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use isovec_engine::fresh::Fresh;

use crate::error::{CliError, Result};

/// A file that is written beside the one whose place it takes, so that at any moment the one or the other is there.
/// Where it is not completed, the older one stays and nothing lies beside it.
pub(crate) struct Draft {
    file: File,
    /// None for what is no file, such as a pipe: it is written as it is.
    beside: Option<Beside>,
    name: String,
}

struct Beside {
    fresh: Fresh,
    /// The file itself, where a link was named.
    path: PathBuf,
}

impl Draft {
    /// # Errors
    /// [`CliError::Io`] for what could not be written there.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        match Self::open(path) {
            Ok((file, beside)) => Ok(Self { file, beside, name }),
            Err(error) => Err(CliError::io(name)(error)),
        }
    }

    fn open(path: &Path) -> io::Result<(File, Option<Beside>)> {
        let write = |path: &Path| OpenOptions::new().write(true).open(path);
        let older = match fs::metadata(path) {
            Ok(older) if older.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(older) if !older.is_file() => return Ok((write(path)?, None)),
            Ok(older) => Some(older),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let path = match &older {
            Some(_) => fs::canonicalize(path)?,
            None => path.to_owned(),
        };
        // Renaming asks nothing of the file that it replaces: what may not be written stays.
        if older.is_some() {
            write(&path)?;
        }
        let (fresh, file) = Fresh::file(&path)?;
        if let Some(older) = older {
            // Whoever may not read it shall not read what takes its place.
            file.set_permissions(older.permissions())?;
        }
        Ok((file, Some(Beside { fresh, path })))
    }

    /// What is written.
    pub(crate) fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(CliError::io(&self.name))
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Brings it onto the disk, and gives it its name.
    pub(crate) fn complete(self) -> Result<()> {
        let Self { file, beside, name } = self;
        let Some(Beside { fresh, path }) = beside else {
            return Ok(());
        };
        let synced = file.sync_all();
        // Some systems rename no file that is open.
        drop(file);
        synced
            .and_then(|()| fresh.replace(&path))
            .map_err(CliError::io(name))?;
        // The new name too, where folders can be synchronised at all.
        let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            folder.sync_all().ok();
        }
        Ok(())
    }
}

/// Writes a file in place of an older one.
pub(crate) fn write(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let draft = Draft::create(path)?;
    let mut writer = BufWriter::new(draft.file()?);
    let written = write(&mut writer).and_then(|()| writer.flush());
    written.map_err(CliError::io(draft.name()))?;
    drop(writer);
    draft.complete()
}

/// Whether a file could be written there, so that it is known before minutes are spent. What is there stays.
pub(crate) fn check(path: &Path) -> Result<()> {
    // Opening a pipe waits for its reader, and closing it again is its end.
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => Ok(()),
        _ => Draft::create(path).map(drop),
    }
}

#[cfg(test)]
mod tests {
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
        let full = |file: &mut dyn Write| {
            file.write_all(b"ha")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let error = write(&path, full).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn what_a_user_has_beside_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cfg.toml");
        let own = ["new", "tmp", "part", "partial", "progress"].map(|ending| {
            let own = folder.path().join(format!("cfg.toml.{ending}"));
            fs::write(&own, "a user's").unwrap();
            own
        });
        check(&path).unwrap();
        write(&path, |file| file.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        for own in own {
            assert_eq!(fs::read(&own).unwrap(), b"a user's", "{own:?}");
        }
        assert_eq!(names(folder.path()).len(), 6);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_rights_stay_rights_and_what_is_no_file_is_written_as_it_is() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.json"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("a.json", &link).unwrap();
        write(&link, |file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let null = Path::new("/dev/null");
        check(null).unwrap();
        write(null, |file| file.write_all(b"text")).unwrap();
        assert!(!fs::metadata(null).unwrap().is_file());
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
