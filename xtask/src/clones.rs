//! Several clones that build into one folder outside of all of them.
//!
//! Cargo names the outputs of a workspace by the places of the packages in it, and compares times. If another clone
//! compiled after a file was written here, its output would count as compiled from that file: a change of clone has this
//! one's crates compiled. And in a new clone every file is new, so that all of them are compiled though nothing differs.
//! Where a new clone takes the place of the last one, its files get the times that those had: a continuous integration's
//! does, which has the variable `CI`. Elsewhere somebody may have compiled other contents in between by cargo alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::metadata::{manifests, packages_of};
use crate::process::Run;
use crate::workspace::Workspace;

/// The file in cargo's folder that says which clone it was last used for.
const STAMP: &str = "isovec-clone";

/// The clone that cargo's folder was last used for.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    root: PathBuf,
    /// Its files by their paths in it; none where other contents may be compiled before this is looked at again.
    files: BTreeMap<String, Source>,
}

/// A file that git knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    /// What git calls its contents.
    contents: String,
    /// When it was written, since 1970.
    written: Duration,
}

/// Has cargo compile this clone's crates if the last ones in its folder were another clone's, and only what differs if they
/// were those of a clone in the same place.
pub(crate) fn take_over(workspace: &Workspace) -> Result<()> {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    take_over_as(workspace, is_ci)
}

fn take_over_as(workspace: &Workspace, is_ci: bool) -> Result<()> {
    let stamp = workspace.target.join(STAMP);
    // What cannot be read is of no clone.
    let last: Last = fs::read(&stamp)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default();
    let mut next = Last {
        root: workspace.root.clone(),
        files: BTreeMap::new(),
    };
    let has_moved = last.root != next.root;
    if has_moved {
        for source in sources(workspace)? {
            set_time(&source, SystemTime::now())?;
        }
    }
    if is_ci {
        next.files = files(workspace)?;
        if !has_moved {
            restore(&workspace.root, &last.files, &mut next.files)?;
        }
    }
    if next == last {
        return Ok(());
    }
    let text = serde_json::to_vec(&next).context("paths are no UTF-8")?;
    fs::create_dir_all(&workspace.target)
        .and_then(|()| fs::write(&stamp, text))
        .with_context(|| format!("cannot write {}", stamp.display()))
}

/// The file that each crate, test and benchmark of both workspaces begins with.
fn sources(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for manifest in manifests(workspace) {
        if !manifest.exists() {
            continue;
        }
        for package in packages_of(workspace, &manifest)? {
            let targets = package["targets"].as_array().into_iter().flatten();
            let paths = targets.filter_map(|target| target["src_path"].as_str());
            found.extend(paths.map(PathBuf::from));
        }
    }
    Ok(found)
}

/// The files that git knows, if there is nothing else in the clone.
fn files(workspace: &Workspace) -> Result<BTreeMap<String, Source>> {
    let git = |args: &[&str]| Run::new(workspace, "git")?.args(args).read();
    let mut found = BTreeMap::new();
    if !git(&["status", "--porcelain"])?.is_empty() {
        return Ok(found);
    }
    // `mode contents stage<tab>path`, and a byte of 0.
    for line in git(&["ls-files", "--stage", "-z"])?.split_terminator('\0') {
        let (head, path) = line
            .split_once('\t')
            .with_context(|| format!("git lists {line:?}"))?;
        let mut words = head.split(' ');
        // A link's own time is not what is compared.
        let (Some("100644" | "100755"), Some(contents)) = (words.next(), words.next()) else {
            continue;
        };
        let written = fs::metadata(workspace.root.join(path))
            .and_then(|file| file.modified())
            .with_context(|| format!("cannot read the time of {path}"))?;
        let source = Source {
            contents: contents.to_owned(),
            written: written.duration_since(UNIX_EPOCH).unwrap_or_default(),
        };
        found.insert(path.to_owned(), source);
    }
    Ok(found)
}

/// Gives files whose contents were there before the times that they had.
fn restore(
    root: &Path,
    last: &BTreeMap<String, Source>,
    next: &mut BTreeMap<String, Source>,
) -> Result<()> {
    for (path, source) in next {
        let before = last
            .get(path)
            .filter(|last| last.contents == source.contents);
        if let Some(before) = before.filter(|before| before.written != source.written) {
            set_time(&root.join(path), UNIX_EPOCH + before.written)?;
            source.written = before.written;
        }
    }
    Ok(())
}

/// Has a file look as if it had been written at a time.
fn set_time(path: &Path, written: SystemTime) -> Result<()> {
    File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(written))
        .with_context(|| format!("cannot set the time of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with clones and what they build into.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn workspace(&self, clone: &str) -> Workspace {
            Workspace {
                root: self.0.path().join(clone),
                cache: self.0.path().join("cache"),
                target: self.0.path().join("cache/target"),
            }
        }

        fn path(&self, clone: &str, file: &str) -> PathBuf {
            self.0.path().join(clone).join(file)
        }

        /// Writes a clone anew, with these contents of one file, as if so many seconds ago.
        fn make(&self, clone: &str, contents: &str, ago: u64) {
            let root = self.0.path().join(clone);
            let _ = fs::remove_dir_all(&root);
            let manifest = "[package]\nname = \"clone\"\nedition = \"2024\"\n[workspace]\n";
            for (file, text) in [
                ("Cargo.toml", manifest),
                ("src/lib.rs", "mod part;"),
                ("src/part.rs", contents),
            ] {
                let path = self.path(clone, file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
                set_time(&path, SystemTime::now() - Duration::from_secs(ago)).unwrap();
            }
            let workspace = self.workspace(clone);
            for args in [
                &["init", "-q"][..],
                &["add", "-A"],
                &["commit", "-q", "-m", "one"],
            ] {
                let who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
                let git = Run::new(&workspace, "git").unwrap();
                git.args(who).args(args).read().unwrap();
            }
        }

        fn written(&self, clone: &str, file: &str) -> SystemTime {
            let path = self.path(clone, file);
            fs::metadata(path).unwrap().modified().unwrap()
        }

        /// The files of a clone that got another time when it was taken over.
        fn touched(&self, clone: &str, is_ci: bool) -> Vec<&'static str> {
            let files = ["src/lib.rs", "src/part.rs"];
            let before = files.map(|file| self.written(clone, file));
            take_over_as(&self.workspace(clone), is_ci).unwrap();
            let after = files.map(|file| self.written(clone, file));
            let both = files.into_iter().zip(before.into_iter().zip(after));
            both.filter(|(_, (before, after))| before != after)
                .map(|(file, _)| file)
                .collect()
        }
    }

    #[test]
    fn another_clone_is_compiled_anew_and_the_same_one_is_not() {
        for is_ci in [false, true] {
            let place = Place::new();
            place.make("one", "", 3600);
            place.make("other", "", 3600);
            assert_eq!(place.touched("one", is_ci), ["src/lib.rs"]);
            assert_eq!(place.touched("one", is_ci), [""; 0]);
            assert_eq!(place.touched("other", is_ci), ["src/lib.rs"]);
            assert_eq!(place.touched("one", is_ci), ["src/lib.rs"]);
        }
    }

    #[test]
    fn a_new_clone_in_the_place_of_the_last_has_its_times_where_nothing_differs() {
        let place = Place::new();
        place.make("one", "1", 3600);
        place.touched("one", true);
        let [first, part] = ["src/lib.rs", "src/part.rs"].map(|file| place.written("one", file));

        place.make("one", "1", 60);
        assert_eq!(place.touched("one", true), ["src/lib.rs", "src/part.rs"]);
        assert_eq!(place.written("one", "src/lib.rs"), first);
        assert_eq!(place.written("one", "src/part.rs"), part);

        // What differs is as new as it is, and what was once is not what was last.
        for contents in ["2", "1"] {
            place.make("one", contents, 30);
            assert_eq!(place.touched("one", true), ["src/lib.rs"]);
            assert!(place.written("one", "src/part.rs") > part);
        }
    }

    #[test]
    fn nothing_gets_an_older_time_where_other_contents_may_have_been_compiled() {
        let place = Place::new();
        place.make("one", "1", 3600);
        place.touched("one", true);
        // Outside of a continuous integration, and in the next one after that.
        place.make("one", "1", 60);
        assert_eq!(place.touched("one", false), [""; 0]);
        place.make("one", "1", 50);
        assert_eq!(place.touched("one", true), [""; 0]);
        // In a clone that is not clean, and in the next one after that.
        place.make("one", "1", 40);
        fs::write(place.path("one", "src/part.rs"), "2").unwrap();
        assert_eq!(place.touched("one", true), [""; 0]);
        place.make("one", "1", 30);
        assert_eq!(place.touched("one", true), [""; 0]);
        // By a stamp that is damaged, everything is of another clone.
        fs::write(place.workspace("one").target.join(STAMP), "no JSON").unwrap();
        assert_eq!(place.touched("one", true), ["src/lib.rs"]);
    }
}
