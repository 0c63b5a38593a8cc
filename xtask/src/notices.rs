//! The licence texts of everything that is inside what the npm packages hold compiled, as their licences ask.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::cargo;
use crate::report;
use crate::wasm::TARGET;
use crate::workspace::Workspace;

/// A crate inside the module.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    version: String,
    /// SPDX expression, as the crate states it.
    licence: String,
    repository: String,
    authors: String,
    folder: PathBuf,
}

/// What a package holds compiled.
pub(crate) struct Compiled {
    /// As its notices call it.
    name: &'static str,
    packages: &'static [&'static str],
    features: Option<&'static str>,
    /// Nothing for this machine.
    target: Option<&'static str>,
}

/// The builds of the wasm module, tract included, and the module of pictures.
pub(crate) const MODULE: Compiled = Compiled {
    name: "WebAssembly module",
    packages: &["isovec-js", "isovec-js-image"],
    features: Some("isovec-js/tract"),
    target: Some(TARGET),
};

/// The add-on for node.
pub(crate) const ADDON: Compiled = Compiled {
    name: "add-on",
    packages: &["isovec-node"],
    features: None,
    target: None,
};

/// Writes the notices; fails when a crate states no licence and ships no text.
pub(crate) fn write(workspace: &Workspace, compiled: &Compiled, out: &Path) -> Result<()> {
    let parts = parts(workspace, compiled)?;
    if parts.is_empty() {
        bail!(
            "the {} has no crate in it: the dependency tree was not understood",
            compiled.name
        );
    }
    let text = render(&parts, compiled.name)?;
    fs::write(out, &text).with_context(|| format!("cannot write {}", out.display()))?;
    report::word(&format!(
        "{}: {} crates, {} KB",
        out.display(),
        parts.len(),
        text.len() / 1024
    ));
    Ok(())
}

/// The crates that end up in what is compiled: what its packages need at run time. Procedural macros and build scripts run in
/// the compiler and leave nothing of themselves behind.
fn parts(workspace: &Workspace, compiled: &Compiled) -> Result<BTreeSet<Part>> {
    let packages = compiled.packages.iter();
    let features = compiled.features.iter();
    let target = compiled.target.iter();
    let tree = cargo(workspace)?
        .args(["tree"])
        .args(packages.flat_map(|package| ["--package", package]))
        .args(features.flat_map(|features| ["--features", features]))
        .args(target.flat_map(|target| ["--target", target]))
        .args([
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .read()?;
    let metadata = cargo(workspace)?
        .args(["metadata", "--format-version", "1"])
        .read()?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("cargo metadata wrote no JSON")?;
    join(&in_tree(&tree), &metadata)
}

/// Name and version of every line such as `serde v1.0.228` or `isovec v0.1.0 (/clone)`.
fn in_tree(tree: &str) -> BTreeSet<(String, String)> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, version) = (words.next()?, words.next()?);
            Some((name.to_owned(), version.strip_prefix('v')?.to_owned()))
        })
        .collect()
}

/// What cargo knows of those crates; ours (which come from no registry) are left out.
fn join(wanted: &BTreeSet<(String, String)>, metadata: &Value) -> Result<BTreeSet<Part>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut parts = BTreeSet::new();
    for package in packages {
        let key = (text(&package["name"]), text(&package["version"]));
        if package["source"].is_null() || !wanted.contains(&key) {
            continue;
        }
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let authors: Vec<String> = package["authors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(&text)
            .collect();
        parts.insert(Part {
            name: key.0,
            version: key.1,
            licence: text(&package["license"]),
            repository: text(&package["repository"]),
            authors: authors.join(", "),
            folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        });
    }
    Ok(parts)
}

/// Whether a file's name says that it holds a licence.
fn is_licence(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "COPYRIGHT",
        "NOTICE",
        "UNLICENSE",
    ]
    .iter()
    .any(|start| name.starts_with(start))
        && ![".RS", ".HTML", ".TMPL"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// The licence files of a crate, by name.
fn licence_files(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_licence(&name) {
            continue;
        }
        if entry.path().is_dir() {
            files.extend(licence_files_in(&entry.path(), &name)?);
        } else {
            let bytes = fs::read(entry.path())?;
            files.push((name, String::from_utf8_lossy(&bytes).replace("\r\n", "\n")));
        }
    }
    files.sort();
    Ok(files)
}

/// Some crates keep their texts in a folder `LICENSES`, under the licences' own names.
fn licence_files_in(folder: &Path, name: &str) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().is_file() {
            let bytes = fs::read(entry.path())?;
            files.push((
                format!("{name}/{}", entry.file_name().to_string_lossy()),
                String::from_utf8_lossy(&bytes).replace("\r\n", "\n"),
            ));
        }
    }
    Ok(files)
}

/// One text for all: the crates first, then every licence text once, with the crates it came with.
/// The same input gives the same bytes.
fn render(parts: &BTreeSet<Part>, compiled: &str) -> Result<String> {
    // By their words: the same licence comes with many widths of line.
    let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut list = String::new();
    for part in parts {
        let label = format!("{} {}", part.name, part.version);
        let files = licence_files(&part.folder)?;
        if files.is_empty() && part.licence.is_empty() {
            bail!("{label} states no licence and ships no licence text: it must not be shipped");
        }
        let licence = if part.licence.is_empty() {
            "see its text below"
        } else {
            &part.licence
        };
        list.push_str(&format!("{label}: {licence}"));
        if !part.repository.is_empty() {
            list.push_str(&format!(" ({})", part.repository));
        }
        if files.is_empty() && !part.authors.is_empty() {
            // Without a text of its own, at least who is to be named.
            list.push_str(&format!(" by {}", part.authors));
        }
        list.push('\n');
        for (_, text) in files {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let entry = texts
                .entry(words)
                .or_insert_with(|| (text.trim().to_owned(), Vec::new()));
            entry.1.push(label.clone());
        }
    }
    let mut out = format!(
        "Third-party notices\n===================\n\n\
         The {compiled} in this package contains the following crates, compiled. Each is\n\
         used under the licence it states; the texts that come with them follow.\n\n",
    );
    out.push_str(&list);
    // Texts that differ in a name alone have about the same length. Side by side they compress to a fifth less.
    let mut texts: Vec<_> = texts.into_values().collect();
    texts.sort_by_key(|(text, _)| text.len());
    for (text, mut labels) in texts {
        labels.dedup();
        out.push_str(&format!(
            "\n{}\n{}\n\n{text}\n",
            "-".repeat(80),
            labels.join(", ")
        ));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_tree_is_read_line_by_line() {
        let tree = "isovec-js v0.1.0 (/clone/js)\nserde v1.0.228\nserde v1.0.228 (*)\n\n";
        let found: Vec<_> = in_tree(tree).into_iter().collect();
        assert_eq!(
            found,
            [
                ("isovec-js".into(), "0.1.0".into()),
                ("serde".into(), "1.0.228".into())
            ]
        );
    }

    #[test]
    fn licence_files_are_known_by_name() {
        for name in [
            "LICENSE",
            "LICENSE-MIT",
            "license.md",
            "COPYING",
            "NOTICE.txt",
            "UNLICENSE",
        ] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["README.md", "license.rs", "src"] {
            assert!(!is_licence(name), "{name}");
        }
    }

    #[test]
    fn ours_and_what_is_not_in_the_tree_are_left_out_and_equal_texts_are_given_once() {
        let dir = tempfile::tempdir().unwrap();
        let package = |name: &str, source: Value| {
            let folder = dir.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("LICENSE"), "Permission is granted\r\n").unwrap();
            json!({"name": name, "version": "1.0.0", "source": source, "license": "MIT",
                   "repository": "", "authors": ["A"], "manifest_path": folder.join("Cargo.toml")})
        };
        let metadata = json!({"packages": [
            package("a", json!("registry")), package("b", json!("registry")),
            package("ours", Value::Null), package("other", json!("registry")),
        ]});
        let wanted = ["a", "b", "ours"]
            .map(|n| (n.to_owned(), "1.0.0".to_owned()))
            .into();
        let parts = join(&wanted, &metadata).unwrap();
        let text = render(&parts, "add-on").unwrap();
        assert!(text.contains("The add-on in this package"));
        assert_eq!(text.matches("Permission is granted").count(), 1);
        assert!(text.contains("a 1.0.0, b 1.0.0") && text.contains("a 1.0.0: MIT"));
        assert!(!text.contains("ours") && !text.contains("other"));
    }

    #[test]
    fn a_crate_without_any_licence_stops_the_build() {
        let dir = tempfile::tempdir().unwrap();
        let metadata = json!({"packages": [{"name": "bare", "version": "1.0.0", "source": "registry",
            "license": null, "manifest_path": dir.path().join("Cargo.toml")}]});
        let wanted = [("bare".to_owned(), "1.0.0".to_owned())].into();
        let error = render(&join(&wanted, &metadata).unwrap(), "add-on")
            .unwrap_err()
            .to_string();
        assert!(error.contains("bare"), "{error}");
    }
}
