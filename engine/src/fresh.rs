//! Files and folders under unique temporary names, which get their final name when they are complete.
//!
//! A name that extends a user's file name may be another file of the user. A name that contains a process id may
//! belong to another process: in every container ids begin with 1. These names are random and created exclusively, so
//! no existing file is opened, truncated or followed. Files that do not get their final name are removed.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// The ending of incomplete files.
pub const ENDING: &str = "partial";

/// Names that are tried.
const TRIES: usize = 16;

/// Bytes that are taken of the name it is made for: the whole must not be longer than systems allow.
const LONGEST: usize = 100;

/// Something in a folder that is removed when this is dropped, unless it was given its place.
#[derive(Debug)]
pub struct Fresh {
    path: PathBuf,
    placed: bool,
}

impl Fresh {
    /// An empty file in the same folder as `path`, whose place it can take.
    ///
    /// # Errors
    /// As [`File::create_new`].
    pub fn file(path: &Path) -> io::Result<(Self, File)> {
        Self::make(path, |fresh| File::create_new(fresh))
    }

    /// Whatever `make` makes of a name in the same folder as `path`.
    ///
    /// # Errors
    /// Those of `make`, which has to refuse a name that is taken with [`io::ErrorKind::AlreadyExists`].
    pub fn make<T>(path: &Path, make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        let (path, made) = numbered(path, random, make)?;
        let placed = false;
        Ok((Self { path, placed }, made))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file at `path` atomically: readers see the old or the new one. The file is closed first, because
    /// some systems cannot rename open files.
    ///
    /// # Errors
    /// As [`fs::rename`]; it is removed then.
    pub fn replace(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.placed = true;
        Ok(())
    }

    /// Leaves it where it is.
    pub fn keep(mut self) -> PathBuf {
        self.placed = true;
        self.path.clone()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.placed {
            // The error that brought us here is the one to report.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A folder that goes with all that is in it when this is dropped.
#[derive(Debug)]
pub struct FreshFolder(PathBuf);

impl FreshFolder {
    /// One inside of `folder`, whose name begins so.
    ///
    /// # Errors
    /// As [`fs::create_dir`].
    pub fn new(folder: &Path, begins: &str) -> io::Result<Self> {
        let (path, ()) = numbered(&folder.join(begins), random, |path| fs::create_dir(path))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it its name. What is in it goes with it. An empty folder of that name is replaced.
    ///
    /// # Errors
    /// As [`fs::rename`], for a folder with something in it among others; it is removed then.
    pub fn place(mut self, path: &Path) -> io::Result<()> {
        match fs::remove_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::rename(&self.0, path)?,
        }
        // Nothing is left to remove.
        self.0 = PathBuf::new();
        Ok(())
    }
}

impl Drop for FreshFolder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean up, as other temporary files are.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A hasher's keys are random, and others at every call.
fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// Makes something under a name that was not there before.
fn numbered<T>(
    path: &Path,
    mut number: impl FnMut() -> u64,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = &name[..name.floor_char_boundary(LONGEST)];
    let mut tries = 1;
    loop {
        let fresh = path.with_file_name(format!("{name}.{:016x}.{ENDING}", number()));
        match make(&fresh) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                tries += 1;
            }
            made => return made.map(|made| (fresh, made)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn it_takes_its_place_or_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("name.json");
        let (fresh, mut file) = Fresh::file(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists() && fresh.path().exists());
        drop(file);
        fresh.replace(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");

        drop(Fresh::file(&path).unwrap());
        assert_eq!(count(folder.path()), 1);
        // A folder in its place: it cannot be renamed, and nothing is left.
        let (fresh, file) = Fresh::file(&path).unwrap();
        drop(file);
        fresh.replace(folder.path()).unwrap_err();
        assert_eq!(count(folder.path()), 1);
    }

    #[test]
    fn a_name_that_another_has_taken_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("name.json");
        let create = |path: &Path| File::create_new(path);
        let (taken, _) = numbered(&path, || 1, create).unwrap();
        fs::write(&taken, "another's").unwrap();
        let mut numbers = 1..;
        let (own, _) = numbered(&path, || numbers.next().unwrap(), create).unwrap();
        let name = "name.json.0000000000000002.partial";
        assert_eq!(own, folder.path().join(name));
        // Where all are taken there is an error, and no end of trying.
        let error = numbered(&path, || 1, create).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&taken).unwrap(), b"another's");
    }

    #[test]
    fn names_as_long_as_systems_allow_have_room() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["n".repeat(255), "\u{e9}".repeat(127)] {
            let path = folder.path().join(name);
            let (fresh, file) = Fresh::file(&path).unwrap();
            drop(file);
            fresh.replace(&path).unwrap();
            assert!(path.exists());
        }
    }

    #[test]
    fn a_folder_takes_its_place_unless_something_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("model");
        for there in [false, true] {
            if there {
                fs::create_dir(&place).unwrap();
            }
            let fresh = FreshFolder::new(folder.path(), "model").unwrap();
            fs::write(fresh.path().join("file"), "text").unwrap();
            fresh.place(&place).unwrap();
            assert_eq!(fs::read(place.join("file")).unwrap(), b"text");
            assert_eq!(count(folder.path()), 1);
            fs::rename(&place, folder.path().join("older")).unwrap();
            fs::remove_dir_all(folder.path().join("older")).unwrap();
        }
        fs::create_dir(&place).unwrap();
        fs::write(place.join("user's"), "text").unwrap();
        let fresh = FreshFolder::new(folder.path(), "model").unwrap();
        fresh.place(&place).unwrap_err();
        assert!(place.join("user's").exists());
        assert_eq!(count(folder.path()), 1);
    }

    #[test]
    fn a_folder_goes_with_what_is_in_it_and_two_are_two() {
        let folder = tempfile::tempdir().unwrap();
        let one = FreshFolder::new(folder.path(), "isovec").unwrap();
        let other = FreshFolder::new(folder.path(), "isovec").unwrap();
        assert_ne!(one.path(), other.path());
        fs::write(one.path().join("file"), "text").unwrap();
        drop((one, other));
        assert_eq!(count(folder.path()), 0);
    }
}
