//! Hashes of weights that were taken before: to read every byte of a model is a large part of a program's start.
//!
//! Of each set of files a hash is kept, under a name that is made of what tells a state of a file from all others without reading it:
//! the device and the inode, the size, and when content and inode changed last. A program can set the first of these times, the
//! second only the system.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isovec_engine::error::Result;
use isovec_engine::fresh::Fresh;
use isovec_engine::weights::WeightsIdentity;

/// Begins what is kept, and what its name is made of. Changes with the hash and with the stamps.
const FORM: &str = "isovec identity 1";

/// A file that changed less long ago may change again without another time: clocks of file systems tick as slowly as that.
const SETTLED: Duration = Duration::from_secs(2);

/// The hashes that a folder keeps, and the states of a bundle's files.
#[derive(Debug, Default)]
pub(super) struct Identities {
    folder: Option<PathBuf>,
    /// Of files that were opened, where they can be told.
    stamps: RefCell<BTreeMap<String, Option<Stamp>>>,
}

/// A state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp(String);

impl Identities {
    /// Those that a folder keeps; without one there are none.
    pub(super) fn kept_in(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            ..Self::default()
        }
    }

    /// Notes the state of a file that is opened, before its content is looked at.
    pub(super) fn opened(&self, name: &str, file: &File) {
        let stamp = self.folder.as_ref().and_then(|_| Stamp::of(file));
        self.stamps.borrow_mut().insert(name.to_owned(), stamp);
    }

    /// The hash of the weights in opened files of these names: the one that is kept of their states, or else that of `hash`, which is
    /// then kept.
    ///
    /// # Errors
    /// Those of `hash`.
    pub(super) fn identity(
        &self,
        names: &[&str],
        hash: impl FnOnce() -> Result<WeightsIdentity>,
    ) -> Result<WeightsIdentity> {
        let place = self.place(names);
        let known = place
            .as_deref()
            .and_then(|place| fs::read_to_string(place).ok());
        if let Some(known) = known.and_then(parse) {
            return Ok(known);
        }
        let identity = hash()?;
        if let Some(place) = place {
            // Who starts next hashes again where this fails.
            let _ = keep(&place, &identity);
        }
        Ok(identity)
    }

    /// Where the hash of files of these names is kept, if all of their states can be told.
    fn place(&self, names: &[&str]) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        let stamps = self.stamps.borrow();
        let mut name = blake3::Hasher::new();
        name.update(FORM.as_bytes());
        for file in names {
            let Stamp(stamp) = stamps.get(*file)?.as_ref()?;
            name.update(format!("\n{}:{file}\n{stamp}", file.len()).as_bytes());
        }
        Some(folder.join(name.finalize().to_hex().as_str()))
    }
}

impl Stamp {
    /// Of an open file. Nothing where the system does not say enough, and for a file that has just changed.
    fn of(file: &File) -> Option<Self> {
        let file = file.metadata().ok()?;
        let changed = Duration::new(file.ctime().try_into().ok()?, file.ctime_nsec() as u32);
        is_settled(changed, SystemTime::now()).then(|| {
            Self(format!(
                "{} {} {} {}.{} {}.{}",
                file.dev(),
                file.ino(),
                file.size(),
                file.mtime(),
                file.mtime_nsec(),
                file.ctime(),
                file.ctime_nsec()
            ))
        })
    }
}

/// Whether a file that changed at a time since 1970 has had that state for long enough.
fn is_settled(changed: Duration, now: SystemTime) -> bool {
    let changed = SystemTime::UNIX_EPOCH.checked_add(changed);
    let since = changed.and_then(|changed| now.duration_since(changed).ok());
    since.is_some_and(|since| since >= SETTLED)
}

/// What was kept, if it is whole.
fn parse(text: String) -> Option<WeightsIdentity> {
    let hash = text.strip_prefix(FORM)?.strip_prefix('\n')?;
    let hash = hash.strip_suffix('\n')?;
    let is_whole = hash.len() == 64
        && hash
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    is_whole.then(|| WeightsIdentity(hash.to_owned()))
}

/// Written whole or not at all: several programs may start at the same time.
fn keep(place: &Path, identity: &WeightsIdentity) -> std::io::Result<()> {
    fs::create_dir_all(place.parent().unwrap_or(place))?;
    let (fresh, mut file) = Fresh::file(place)?;
    let written = file.write_all(format!("{FORM}\n{}\n", identity.0).as_bytes());
    drop(file);
    written.and_then(|()| fresh.replace(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(digit: &str) -> WeightsIdentity {
        WeightsIdentity(digit.repeat(64))
    }

    /// Files of these names and states, whose hashes are kept in a folder.
    fn files(folder: &Path, states: &[(&str, &str)]) -> Identities {
        let identities = Identities::kept_in(Some(folder.to_owned()));
        for (name, state) in states {
            let stamp = Some(Stamp((*state).to_owned()));
            identities
                .stamps
                .borrow_mut()
                .insert((*name).to_owned(), stamp);
        }
        identities
    }

    /// The hash of all of them, which is taken as `digit` where it is.
    fn taken(folder: &Path, states: &[(&str, &str)], digit: &str) -> WeightsIdentity {
        let names: Vec<&str> = states.iter().map(|(name, _)| *name).collect();
        let found = files(folder, states).identity(&names, || Ok(of(digit)));
        found.unwrap()
    }

    #[test]
    fn a_hash_is_taken_once_for_a_state() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("identities");
        let states = [("a", "1"), ("b", "2")];
        assert_eq!(taken(&folder, &states, "a"), of("a"));
        assert_eq!(taken(&folder, &states, "b"), of("a"));
        // Another state, another name, fewer files, and the same words in other places.
        let others: [&[(&str, &str)]; 4] = [
            &[("a", "1"), ("b", "3")],
            &[("a", "1"), ("c", "2")],
            &[("a", "1")],
            &[("a\n1\n1:b", "2")],
        ];
        for states in others {
            assert_eq!(taken(&folder, states, "b"), of("b"));
        }
        // A file whose state cannot be told, and one that was not opened.
        let untold = files(&folder, &states);
        untold.stamps.borrow_mut().insert("b".into(), None);
        assert_eq!(
            untold.identity(&["a", "b"], || Ok(of("c"))).unwrap(),
            of("c")
        );
        assert_eq!(
            untold.identity(&["a", "z"], || Ok(of("c"))).unwrap(),
            of("c")
        );
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 5);
    }

    #[test]
    fn what_is_not_whole_is_taken_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, states) = (folder.path(), [("a", "1")]);
        taken(folder, &states, "a");
        let kept = fs::read_dir(folder)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let whole = fs::read_to_string(&kept).unwrap();
        let damaged = [
            String::new(),
            whole[..40].to_owned(),
            whole.replace('\n', " "),
            whole.replace('a', "A"),
            whole.replace("1\n", "2\n"),
            format!("{whole}\n"),
        ];
        for text in damaged {
            fs::write(&kept, &text).unwrap();
            assert_eq!(taken(folder, &states, "b"), of("b"), "{text:?}");
        }
        assert_eq!(taken(folder, &states, "c"), of("b"));
    }

    #[test]
    fn where_nothing_can_be_kept_it_is_hashed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for digit in ["a", "b"] {
            assert_eq!(taken(file.path(), &[("a", "1")], digit), of(digit));
        }
    }

    #[test]
    fn a_file_that_has_just_changed_has_no_stamp() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Stamp::of(file.as_file()), None);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let changed = Duration::from_secs(100);
        assert!(!is_settled(changed, at(101)));
        assert!(is_settled(changed, at(102)));
        // A clock that was put back.
        assert!(!is_settled(changed, at(50)));
    }
}
