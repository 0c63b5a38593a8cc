//! The checks that passed on this machine, each with its commit: the start of `cargo xtask test --since-passed`.
//!
//! A check is noted only if the clone was clean before and after it, so that the commit identifies the checked files. A
//! note is valid for a week and for the same compiler. It expires because browsers and libraries of the system change.
//!
//! A machine without a note of a check that is left to a run of the whole goes by the last such run (`WHOLE`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::process::Run;
use crate::workspace::Workspace;

/// The file that names the commit on which the whole last passed, somewhere: in its first word.
pub(super) const WHOLE: &str = ".ci/whole";

/// How long a note is valid.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);

/// One check that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    commit: String,
    /// The output of `rustc -vV`.
    compiler: String,
    /// Seconds since 1970.
    at: u64,
}

/// The notes of this machine.
pub(super) struct Passed {
    path: PathBuf,
    compiler: String,
    notes: BTreeMap<String, Note>,
}

impl Passed {
    /// Reads the notes in the cache.
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let compiler = Run::new(workspace, "rustc")?.args(["-vV"]).read()?;
        let path = workspace.cache.join("passed.json");
        Ok(Self {
            notes: read(&path),
            path,
            compiler,
        })
    }

    /// The commit on which a check passed, if the note is still valid.
    pub(super) fn commit(&self, check: &str) -> Option<&str> {
        let note = self.notes.get(check)?;
        let is_fresh = now().saturating_sub(note.at) < FRESH.as_secs();
        (is_fresh && note.compiler == self.compiler).then_some(note.commit.as_str())
    }

    /// Notes that a check passed on a commit.
    pub(super) fn note(&mut self, check: &str, commit: &str) -> Result<()> {
        // Another process may note its own checks at the same time.
        let path = self.path.with_extension("lock");
        let lock =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        lock.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
        let note = Note {
            commit: commit.to_owned(),
            compiler: self.compiler.clone(),
            at: now(),
        };
        self.notes = read(&self.path);
        self.notes.insert(check.to_owned(), note);
        let text = serde_json::to_vec_pretty(&self.notes).context("notes are plain JSON")?;
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// The commit on which the whole last passed, if this clone says one and has it.
pub(super) fn whole(workspace: &Workspace) -> Option<String> {
    let text = fs::read_to_string(workspace.root.join(WHOLE)).ok()?;
    let commit = text.split_whitespace().next()?;
    has_commit(workspace, commit).then(|| commit.to_owned())
}

/// The notes of a file. One that is missing or damaged has none.
fn read(path: &Path) -> BTreeMap<String, Note> {
    let text = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// The commit that is checked out, if nothing differs from it and no file is there that git does not know of.
pub(super) fn clean_commit(workspace: &Workspace) -> Result<Option<String>> {
    let git = |args: &[&str]| Run::new(workspace, "git")?.args(args).read();
    if !git(&["status", "--porcelain"])?.is_empty() {
        return Ok(None);
    }
    Ok(Some(git(&["rev-parse", "HEAD"])?.trim().to_owned()))
}

/// Whether this clone has that commit.
pub(super) fn has_commit(workspace: &Workspace, commit: &str) -> bool {
    let name = format!("{commit}^{{commit}}");
    Run::new(workspace, "git").is_ok_and(|git| git.args(["cat-file", "-e", &name]).succeeds())
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_of_the_whole_is_one() {
        let workspace = Workspace::find().unwrap();
        let text = fs::read_to_string(workspace.root.join(WHOLE)).unwrap();
        let commit = text.split_whitespace().next().unwrap();
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn a_note_is_believed_while_it_is_fresh_and_the_compiler_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: folder.path().to_owned(),
            cache: folder.path().to_owned(),
            target: folder.path().join("target"),
        };
        let mut passed = Passed::read(&workspace).unwrap();
        assert_eq!(passed.commit("native"), None);
        passed.note("native", "abc").unwrap();
        let mut again = Passed::read(&workspace).unwrap();
        assert_eq!(
            (again.commit("native"), again.commit("npm")),
            (Some("abc"), None)
        );

        again.note("npm", "def").unwrap();
        passed.note("demo", "ghi").unwrap();
        let all = Passed::read(&workspace).unwrap();
        let noted = ["native", "npm", "demo"].map(|check| all.commit(check));
        assert_eq!(noted, [Some("abc"), Some("def"), Some("ghi")]);

        let note = again.notes.get_mut("native").unwrap();
        note.at -= FRESH.as_secs();
        assert_eq!(again.commit("native"), None);
        passed.compiler.push('x');
        assert_eq!(passed.commit("native"), None);

        fs::write(&passed.path, "no JSON").unwrap();
        assert_eq!(Passed::read(&workspace).unwrap().commit("native"), None);
    }

    #[test]
    fn a_clone_with_a_new_file_is_not_clean() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: folder.path().join("clone"),
            cache: folder.path().to_owned(),
            target: folder.path().join("target"),
        };
        fs::create_dir(&workspace.root).unwrap();
        let git = |args: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
            let run = Run::new(&workspace, "git").unwrap();
            run.args(who).args(args).read().unwrap()
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let commit = clean_commit(&workspace).unwrap().unwrap();
        assert!(has_commit(&workspace, &commit));
        assert!(!has_commit(&workspace, &"0".repeat(40)));
        fs::write(workspace.root.join("new"), "").unwrap();
        assert_eq!(clean_commit(&workspace).unwrap(), None);
    }
}
