//! Several clones that build into one folder outside of all of them.
//!
//! Cargo names the outputs of a workspace by the places of the packages in it, and compares times. If another clone
//! compiled after a file was written here, its output would count as compiled from that file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::Run;
use crate::workspace::Workspace;

/// The file in cargo's folder that names the clone it was last used for.
const STAMP: &str = "isovec-clone";

/// Has cargo compile this clone's crates, if the last ones in its folder were another clone's.
pub(crate) fn take_over(workspace: &Workspace) -> Result<()> {
    let stamp = workspace.target.join(STAMP);
    let root = workspace.root.to_string_lossy();
    if fs::read_to_string(&stamp).is_ok_and(|last| last == root) {
        return Ok(());
    }
    let metadata = Run::new(workspace, "cargo")?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .read()?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("cargo metadata wrote no JSON")?;
    for source in sources(&metadata) {
        touch(&source)?;
    }
    fs::create_dir_all(&workspace.target)
        .and_then(|()| fs::write(&stamp, &*root))
        .with_context(|| format!("cannot write {}", stamp.display()))
}

/// The file that each crate, test and benchmark begins with.
fn sources(metadata: &Value) -> Vec<PathBuf> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let paths = targets.filter_map(|target| target["src_path"].as_str());
    paths.map(PathBuf::from).collect()
}

/// Makes a file as new as if it had just been written.
fn touch(path: &Path) -> Result<()> {
    File::options()
        .append(true)
        .open(path)
        .and_then(|file| file.set_modified(SystemTime::now()))
        .with_context(|| format!("cannot set the time of {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn another_clone_is_compiled_anew_and_the_same_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let source = |clone: &str| folder.path().join(clone).join("src/lib.rs");
        let old = SystemTime::now() - Duration::from_secs(3600);
        for clone in ["one", "other"] {
            fs::create_dir_all(source(clone).parent().unwrap()).unwrap();
            fs::write(source(clone), "").unwrap();
            let manifest = "[package]\nname = \"clone\"\nedition = \"2024\"\n[workspace]\n";
            fs::write(folder.path().join(clone).join("Cargo.toml"), manifest).unwrap();
        }
        let is_new = |clone: &str| {
            let path = source(clone);
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(old).unwrap();
            written > old
        };
        let take_over = |clone: &str| {
            take_over(&Workspace {
                root: folder.path().join(clone),
                cache: folder.path().join("cache"),
                target: folder.path().join("cache/target"),
            })
            .unwrap();
            ["one", "other"].map(is_new)
        };
        let _ = ["one", "other"].map(is_new);
        assert_eq!(take_over("one"), [true, false]);
        assert_eq!(take_over("one"), [false, false]);
        assert_eq!(take_over("other"), [false, true]);
        assert_eq!(take_over("one"), [true, false]);
    }
}
