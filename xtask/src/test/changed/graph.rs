//! Which package depends on which, and which files elsewhere a package's source names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::metadata::packages;
use crate::workspace::Workspace;

/// The workspace's packages.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Folders, relative to the root, with their packages. The root's own is empty.
    folders: Vec<(PathBuf, String)>,
    /// What each depends on.
    needs: BTreeMap<String, BTreeSet<String>>,
    /// Files or folders outside its own that a package's source names.
    names: BTreeMap<String, BTreeSet<PathBuf>>,
}

/// What of the root's folder is the root's package. Its manifest and the lock file are everybody's.
const ROOT: &[&str] = &["src", "tests", "examples", "proptest-regressions"];

impl Graph {
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let mut graph = Self::of(&packages(workspace)?, &workspace.root)?;
        for (folder, name) in graph.folders.clone() {
            let named = graph.named(&workspace.root, &folder, &name);
            graph.names.insert(name, named);
        }
        Ok(graph)
    }

    fn of(packages: &[Value], root: &Path) -> Result<Self> {
        let mut graph = Self::default();
        for package in packages {
            let text = |key: &str| package[key].as_str().context("a package without a name");
            let manifest = PathBuf::from(text("manifest_path")?);
            let folder = manifest.parent().unwrap_or(&manifest);
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
            let name = text("name")?.to_owned();
            let all = package["dependencies"].as_array().into_iter().flatten();
            let ours = all.filter(|all| all["path"].is_string());
            let needs = ours.filter_map(|all| all["name"].as_str().map(str::to_owned));
            graph.needs.insert(name.clone(), needs.collect());
            graph.folders.push((folder, name));
        }
        // The innermost folder is the owner's.
        let depth = |folder: &PathBuf| std::cmp::Reverse(folder.components().count());
        graph.folders.sort_by_key(|(folder, _)| depth(folder));
        Ok(graph)
    }

    /// The package that a file belongs to.
    pub(super) fn owner(&self, file: &str) -> Option<&str> {
        let path = Path::new(file);
        let (folder, name) = self
            .folders
            .iter()
            .find(|(folder, _)| path.starts_with(folder))?;
        let is_of_root = || ROOT.iter().any(|own| path.starts_with(own));
        (folder.components().next().is_some() || is_of_root()).then_some(name)
    }

    /// The packages whose source names a file that is not theirs, or a folder that it lies in.
    pub(super) fn who_names(&self, file: &str) -> BTreeSet<String> {
        let path = Path::new(file);
        let all = self.names.iter();
        all.filter(|(_, named)| named.iter().any(|named| path.starts_with(named)))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// These and all that depend on them.
    pub(super) fn above(&self, from: BTreeSet<String>) -> BTreeSet<String> {
        closure(from, |name| {
            let all = self.needs.iter();
            let above = all.filter(|(_, needs)| needs.contains(name));
            above.map(|(above, _)| above.clone()).collect()
        })
    }

    /// These and all that they depend on.
    pub(super) fn below(&self, from: BTreeSet<String>) -> BTreeSet<String> {
        closure(from, |name| {
            self.needs.get(name).cloned().unwrap_or_default()
        })
    }

    /// What lies outside a package and is named in its source, as by `include_str!("../../other/file")`.
    fn named(&self, root: &Path, folder: &Path, package: &str) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        let mut open = vec![folder.to_owned()];
        while let Some(inner) = open.pop() {
            let Ok(entries) = fs::read_dir(root.join(&inner)) else {
                continue;
            };
            for entry in entries.flatten() {
                let path = inner.join(entry.file_name());
                let Some(file) = path.to_str() else { continue };
                if self.owner(file) != Some(package) {
                    continue;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let built = ["target", "node_modules"];
                    if !built.iter().any(|name| path.ends_with(name)) {
                        open.push(path);
                    }
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
                    for literal in upward(&text) {
                        // Relative to the file, or to the package's folder.
                        let beside = path.parent().and_then(|beside| joined(beside, literal));
                        let within = joined(folder, literal);
                        let elsewhere = |path: &PathBuf| {
                            path.components().next().is_some()
                                && path.to_str().and_then(|path| self.owner(path)) != Some(package)
                                && root.join(path).exists()
                        };
                        found.extend([beside, within].into_iter().flatten().filter(elsewhere));
                    }
                }
            }
        }
        found
    }
}

/// What is reached from some names.
fn closure(from: BTreeSet<String>, next: impl Fn(&String) -> BTreeSet<String>) -> BTreeSet<String> {
    let mut open: Vec<String> = from.into_iter().collect();
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if found.contains(&name) {
            continue;
        }
        open.extend(next(&name));
        found.insert(name);
    }
    found
}

/// The literals of a source that go up a folder, without a leading slash (`concat!(env!(…), "/../a")`).
fn upward(text: &str) -> impl Iterator<Item = &str> {
    text.split('"')
        .filter(|literal| literal.contains("../") && !literal.contains('\n'))
        .map(|literal| literal.trim_start_matches('/'))
}

/// A path without steps up; `None` where it leaves the root.
fn joined(folder: &Path, literal: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for part in Path::new(literal).components() {
        match part {
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lose_their_steps_up() {
        let joined = |folder: &str, literal| joined(Path::new(folder), literal);
        assert_eq!(joined("a/src", "../b/c"), Some("a/b/c".into()));
        assert_eq!(joined("a", "../../b"), None);
        assert_eq!(joined("a", "/b"), None);
    }

    #[test]
    fn the_owner_is_the_innermost_package() {
        let packages = [
            json!({"name": "root", "manifest_path": "/r/Cargo.toml", "dependencies": []}),
            json!({"name": "a", "manifest_path": "/r/a/Cargo.toml", "dependencies": []}),
            json!({"name": "b", "manifest_path": "/r/a/b/Cargo.toml",
                "dependencies": [{"name": "a", "path": "/r/a"}, {"name": "serde"}]}),
        ];
        let graph = Graph::of(&packages, Path::new("/r")).unwrap();
        assert_eq!(graph.owner("a/b/src/lib.rs"), Some("b"));
        assert_eq!(graph.owner("a/bb"), Some("a"));
        assert_eq!(graph.owner("src/lib.rs"), Some("root"));
        assert_eq!(graph.owner("new/file"), None);
        let of = |name: &str| BTreeSet::from([name.to_owned()]);
        let both = BTreeSet::from(["a", "b"].map(str::to_owned));
        assert_eq!(graph.above(of("a")), both);
        assert_eq!(graph.above(of("b")), of("b"));
        assert_eq!(graph.below(of("b")), both);
    }

    #[test]
    fn what_a_source_names_elsewhere_is_seen() {
        let workspace = Workspace::find().unwrap();
        let graph = Graph::read(&workspace).unwrap();
        assert_eq!(
            upward("include_str!(\"../a.md\"); \"b\"; concat!(env!(\"C\"), \"/../d\")")
                .collect::<Vec<_>>(),
            ["../a.md", "../d"]
        );
        // The fixtures at the root are used by most.
        let who = graph.who_names("tests/data/tiny-bert/config.json");
        for name in ["isovec-cli", "isovec-soak"] {
            assert!(who.contains(name), "{name} of {who:?}");
        }
    }
}
