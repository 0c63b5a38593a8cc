//! Writes to a disk: an object is there whole, and stays when the power is cut, or it is not there.
//!
//! `object_store` stages a file beside the one that it is to become. A killed process would leave it there, where readers of the
//! folder find it. Here it is staged in a folder of its own, and locked while its writer lives.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use object_store::{Error, PutMode, Result};

/// The folder of what is being written.
const STAGED: &str = "writing";

/// A folder of a disk.
pub(crate) struct Disk {
    root: PathBuf,
    /// What makes the names of staged files this writer's own.
    own: u64,
    staged: AtomicU64,
}

impl Disk {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            own: RandomState::new().hash_one(std::process::id()),
            staged: AtomicU64::new(0),
        }
    }

    /// Removes what writers left that live no more.
    pub(crate) fn sweep(&self) {
        for entry in fs::read_dir(self.root.join(STAGED))
            .into_iter()
            .flatten()
            .flatten()
        {
            // Whoever writes it holds its lock. Where there are no locks, nothing is removed.
            let path = entry.path();
            let dead = File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
            if dead {
                fs::remove_file(&path).ok();
            }
        }
    }

    /// Stores an object: where there is none, or in place of what there was.
    pub(crate) fn put(&self, name: &str, bytes: &[u8], mode: &PutMode) -> Result<()> {
        let staged = self.staged.fetch_add(1, Relaxed);
        let staged = self
            .root
            .join(STAGED)
            .join(format!("{:016x}-{staged}", self.own));
        let target = self.root.join(name);
        let put = self.stage(&staged, bytes).and_then(|file| {
            let folder = target.parent().unwrap_or(&self.root);
            if !folder.is_dir() {
                fs::create_dir_all(folder)?;
                sync(&self.root)?;
            }
            name_whole(&staged, &target, mode)?;
            drop(file);
            sync(folder)
        });
        // After a rename it is gone already.
        fs::remove_file(&staged).ok();
        put.map_err(|source| {
            let exists = source.kind() == ErrorKind::AlreadyExists;
            let source = Box::new(source);
            match exists {
                true => Error::AlreadyExists {
                    path: name.to_owned(),
                    source,
                },
                false => Error::Generic {
                    store: "disk",
                    source,
                },
            }
        })
    }

    /// Writes a file and locks it. The lock ends with the file that is returned.
    fn stage(&self, path: &Path, bytes: &[u8]) -> io::Result<File> {
        fs::create_dir_all(self.root.join(STAGED))?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        // Where there are no locks, a file that a killed run left stays.
        file.try_lock().ok();
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(file)
    }
}

/// Gives a staged file its name, at once and whole. Only a hard link also fails where there is one already.
fn name_whole(staged: &Path, target: &Path, mode: &PutMode) -> io::Result<()> {
    match mode {
        PutMode::Create => fs::hard_link(staged, target),
        _ => fs::rename(staged, target),
    }
}

/// Brings a folder's names onto the disk.
fn sync(folder: &Path) -> io::Result<()> {
    // Only Unix opens folders.
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn the_first_stays_and_a_replacement_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path().to_owned());
        disk.put("rows/a", b"first", &PutMode::Create).unwrap();
        let second = disk.put("rows/a", b"second", &PutMode::Create);
        assert!(
            matches!(second, Err(Error::AlreadyExists { .. })),
            "{second:?}"
        );
        let read = || fs::read(folder.path().join("rows/a")).unwrap();
        assert_eq!(read(), b"first");
        disk.put("rows/a", b"third", &PutMode::Overwrite).unwrap();
        assert_eq!(read(), b"third");
        assert_eq!(names(&folder.path().join("rows")), ["a"]);
        assert_eq!(names(&folder.path().join(STAGED)), Vec::<String>::new());
    }

    #[test]
    fn of_writers_at_once_one_is_first_and_nobody_sees_a_part() {
        const BYTES: usize = 1 << 20;
        for _ in 0..100 {
            let folder = tempfile::tempdir().unwrap();
            let target = &folder.path().join("named");
            let staged = [0, 1].map(|own: u8| {
                let staged = folder.path().join(own.to_string());
                fs::write(&staged, vec![own; BYTES]).unwrap();
                staged
            });
            let (begun, ended) = (&Barrier::new(3), &AtomicU64::new(0));
            let named = std::thread::scope(|scope| {
                let writers = staged.each_ref().map(|staged| {
                    scope.spawn(move || {
                        begun.wait();
                        let named = name_whole(staged, target, &PutMode::Create);
                        ended.fetch_add(1, Relaxed);
                        named.is_ok()
                    })
                });
                begun.wait();
                while ended.load(Relaxed) < 2 {
                    if let Ok(read) = fs::read(target) {
                        assert_eq!(read.len(), BYTES);
                    }
                }
                writers.map(|writer| writer.join().unwrap())
            });
            let first = u8::from(named[1]);
            assert_eq!(named, [first == 0, first == 1]);
            assert!(fs::read(target).unwrap() == vec![first; BYTES]);
        }
    }

    #[test]
    fn what_cannot_be_named_is_not_left_half_written() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path().to_owned());
        fs::write(folder.path().join("rows"), "no folder").unwrap();
        let put = disk.put("rows/a", b"first", &PutMode::Create);
        assert!(put.is_err());
        assert_eq!(names(&folder.path().join(STAGED)), Vec::<String>::new());
    }

    #[test]
    fn only_what_nobody_writes_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(folder.path().to_owned());
        let staged = folder.path().join(STAGED);
        let (alive, dead) = (staged.join("alive"), staged.join("dead"));
        let writing = disk.stage(&alive, b"half").unwrap();
        drop(disk.stage(&dead, b"half").unwrap());
        disk.sweep();
        assert_eq!(names(&staged), ["alive"]);
        drop(writing);
        disk.sweep();
        assert_eq!(names(&staged), Vec::<String>::new());
    }
}
