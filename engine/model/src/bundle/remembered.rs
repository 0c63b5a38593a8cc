//! Hashes of weights that were taken before: to read every byte of a model is a large part of a program's start.
//!
//! Of each set of files a hash is kept, under a name that is made of what tells a state of a file from all others without reading it:
//! the device and the inode, the size, and when content and inode changed last. A program can set the first of these times, the
//! second only the system.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use isovec_engine::error::Result;
use isovec_engine::weights::WeightsIdentity;

/// Begins what is kept, and what its name is made of. Changes with the hash and with the stamps.
const FORM: &str = "isovec identity 1";

/// A file that changed less long ago may change again without another time: clocks of file systems tick as slowly as that.
#[cfg_attr(not(unix), allow(dead_code))]
const SETTLED: Duration = Duration::from_secs(2);

/// A state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(String);

impl Stamp {
    /// Of an open file. Nothing where the system does not say enough, and for a file that has just changed.
    #[cfg(unix)]
    pub(super) fn of(file: &File) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
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

    #[cfg(not(unix))]
    pub(super) fn of(_: &File) -> Option<Self> {
        None
    }
}

/// Whether a file that changed at a time since 1970 has had that state for long enough.
#[cfg_attr(not(unix), allow(dead_code))]
fn is_settled(changed: Duration, now: SystemTime) -> bool {
    let since = now.duration_since(SystemTime::UNIX_EPOCH + changed);
    since.is_ok_and(|since| since >= SETTLED)
}

/// The hash of the weights in files of these names and states: the one that `folder` keeps, or else that of `hash`, which is then kept.
pub(super) fn identity(
    folder: &Path,
    files: &[(String, Stamp)],
    hash: impl FnOnce() -> Result<WeightsIdentity>,
) -> Result<WeightsIdentity> {
    let mut name = blake3::Hasher::new();
    name.update(FORM.as_bytes());
    for (file, Stamp(stamp)) in files {
        name.update(format!("\n{}:{file}\n{stamp}", file.len()).as_bytes());
    }
    let place = folder.join(name.finalize().to_hex().as_str());
    if let Some(known) = fs::read_to_string(&place).ok().and_then(parse) {
        return Ok(known);
    }
    let identity = hash()?;
    // Who starts next hashes again where this fails.
    let _ = keep(folder, &place, &identity);
    Ok(identity)
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
fn keep(folder: &Path, place: &Path, identity: &WeightsIdentity) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let own = place.with_extension(std::process::id().to_string());
    fs::write(&own, format!("{FORM}\n{}\n", identity.0))?;
    fs::rename(&own, place).inspect_err(|_| drop(fs::remove_file(&own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(digit: &str) -> WeightsIdentity {
        WeightsIdentity(digit.repeat(64))
    }

    #[test]
    fn a_hash_is_taken_once_for_a_state() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("identities");
        let stamp = |text: &str| Stamp(text.to_owned());
        let files = [("a".to_owned(), stamp("1")), ("b".to_owned(), stamp("2"))];
        assert_eq!(identity(&folder, &files, || Ok(of("a"))).unwrap(), of("a"));
        let again = identity(&folder, &files, || panic!("it is known"));
        assert_eq!(again.unwrap(), of("a"));
        // Another state, another name, fewer files, and the same words in other places.
        let others = [
            vec![("a".to_owned(), stamp("1")), ("b".to_owned(), stamp("3"))],
            vec![("a".to_owned(), stamp("1")), ("c".to_owned(), stamp("2"))],
            vec![("a".to_owned(), stamp("1"))],
            vec![("a\n1\n1:b".to_owned(), stamp("2"))],
        ];
        for files in others {
            assert_eq!(identity(&folder, &files, || Ok(of("b"))).unwrap(), of("b"));
        }
    }

    #[test]
    fn what_is_not_whole_is_taken_anew() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("a".to_owned(), Stamp("1".into()))];
        identity(folder.path(), &files, || Ok(of("a"))).unwrap();
        let [kept] = &fs::read_dir(folder.path()).unwrap().collect::<Vec<_>>()[..] else {
            panic!("one file");
        };
        let kept = kept.as_ref().unwrap().path();
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
            let taken = identity(folder.path(), &files, || Ok(of("b"))).unwrap();
            assert_eq!(taken, of("b"), "{text:?}");
        }
        assert_eq!(
            identity(folder.path(), &files, || Ok(of("c"))).unwrap(),
            of("b")
        );
    }

    #[test]
    fn where_nothing_can_be_kept_it_is_hashed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let files = [("a".to_owned(), Stamp("1".into()))];
        for digit in ["a", "b"] {
            let taken = identity(file.path(), &files, || Ok(of(digit))).unwrap();
            assert_eq!(taken, of(digit));
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
