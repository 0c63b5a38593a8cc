//! Compares ARCHITECTURE.md with the crates: every package has a row with its folder, and depends only on packages in
//! rows above its own. Dependencies of tests are ignored: a layer may be tested with layers above it.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Folder and package of each row that has a package, from the foundation up.
fn rows(text: &str) -> Vec<(String, String)> {
    let table = text
        .lines()
        .skip_while(|line| !line.starts_with("| folder | crate |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| {
        let cells = row.split('|').map(|cell| cell.trim().trim_matches('`'));
        cells.collect::<Vec<_>>()
    });
    cells
        .filter(|cells| !cells[2].is_empty())
        .map(|cells| {
            (
                cells[1].trim_end_matches('/').to_owned(),
                cells[2].to_owned(),
            )
        })
        .collect()
}

/// The folder of a workspace apart from the root's.
const APART: &str = "bindings/datafusion";

/// Folder and name of every package, and the packages of the repository that it is built on.
fn packages(root: &Path) -> Vec<(String, String, Vec<String>)> {
    let mut all = packages_of(root, root);
    all.extend(packages_of(root, &root.join(APART)));
    all
}

/// Those of the workspace in one of the root's folders.
fn packages_of(root: &Path, workspace: &Path) -> Vec<(String, String, Vec<String>)> {
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(workspace)
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let package = |package: &Value| {
        let manifest = text(&package["manifest_path"]);
        let folder = Path::new(&manifest).parent().unwrap();
        let folder = folder.strip_prefix(root).unwrap().display().to_string();
        let needs = package["dependencies"].as_array().unwrap().iter();
        let needs = needs.filter(|needs| needs["path"].is_string() && needs["kind"] != "dev");
        let needs = needs.map(|needs| text(&needs["name"])).collect();
        (folder.replace('\\', "/"), text(&package["name"]), needs)
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(package)
        .collect()
}

#[test]
fn arrows_point_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&text);
    let place = |name: &str| rows.iter().position(|(_, row)| row == name);
    let packages = packages(root);
    assert!(packages.len() > 10, "{packages:?}");
    for (folder, name, needs) in &packages {
        let at = place(name).unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {name}"));
        // The SDK is the root's package.
        let folder = if folder.is_empty() { "src" } else { folder };
        assert_eq!(rows[at].0, folder, "{name}");
        for below in needs {
            assert!(
                place(below).is_some_and(|below| below < at),
                "{name} is built on {below}, which ARCHITECTURE.md does not have below it"
            );
        }
    }
    for (_, name) in &rows {
        let exists = packages.iter().any(|(_, package, _)| package == name);
        assert!(exists, "there is no package {name}");
    }
}

/// Folders of what only builds, tests or measures.
const BESIDES: [&str; 4] = ["benches/", "fuzz", "tests/", "xtask"];

/// The house as a Mermaid graph: every crate that ships, and an arrow to each that it is built on. What another arrow leads to
/// already is left out.
fn drawn(packages: &[(String, String, Vec<String>)]) -> String {
    let ships = |folder: &str| !BESIDES.iter().any(|besides| folder.starts_with(besides));
    let shown = |folder: &str| match folder {
        "" => "src".to_owned(),
        folder => folder.to_owned(),
    };
    let needs: BTreeMap<&str, (String, &[String])> = packages
        .iter()
        .filter(|(folder, ..)| ships(folder))
        .map(|(folder, name, needs)| (name.as_str(), (shown(folder), needs.as_slice())))
        .collect();
    fn leads(needs: &BTreeMap<&str, (String, &[String])>, from: &str, to: &str) -> bool {
        let below = needs.get(from).map_or(&[][..], |(_, below)| below);
        below
            .iter()
            .any(|next| next == to || leads(needs, next, to))
    }
    let mut lines = vec!["```mermaid".to_owned(), "graph TD".to_owned()];
    let mut folders: Vec<_> = needs.iter().collect();
    folders.sort_by_key(|(_, (folder, _))| folder);
    for (name, (folder, _)) in &folders {
        lines.push(format!("  {name}[\"{folder}/<br>{name}\"]"));
    }
    for (name, (_, below)) in &folders {
        let direct: BTreeSet<&String> = below.iter().collect();
        let direct = direct.iter().filter(|to| {
            let mut others = direct.iter().filter(|other| other != to);
            !others.any(|other| leads(&needs, other, to))
        });
        lines.extend(direct.map(|to| format!("  {name} --> {to}")));
    }
    lines.push("```".to_owned());
    lines.join("\n")
}

#[test]
fn the_picture_is_drawn_from_the_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let picture = drawn(&packages(root));
    assert!(
        text.contains(&picture),
        "ARCHITECTURE.md has another picture than the crates. It is:\n\n{picture}\n"
    );
}

#[test]
fn what_another_arrow_leads_to_is_not_drawn() {
    let package = |folder: &str, name: &str, needs: &[&str]| {
        let needs = needs.iter().map(|need| need.to_string()).collect();
        (folder.to_owned(), name.to_owned(), needs)
    };
    let picture = drawn(&[
        package("", "top", &["low", "middle"]),
        package("m", "middle", &["low"]),
        package("l", "low", &[]),
        package("tests/t", "test", &["top"]),
    ]);
    let expected = "```mermaid\ngraph TD\n  low[\"l/<br>low\"]\n  middle[\"m/<br>middle\"]\n  top[\"src/<br>top\"]\n  \
                    middle --> low\n  top --> middle\n```";
    assert_eq!(picture, expected);
}

#[test]
fn rows_are_read_from_the_table_alone() {
    let text = "| a | `b` |\n\n| folder | crate | holds |\n|---|---|---|\n\
                | `x/` | `one` | |\n| `www/` | | page |\n\n| `y/` | `two` | |\n";
    assert_eq!(rows(text), [("x".to_owned(), "one".to_owned())]);
}
