//! What a program pays that adds isovec as it is: few crates, so that it is built soon and its supply chain can be read.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Crates of a build for Linux with default features, isovec's own among them.
const MOST: usize = 130;

/// Name and version of every crate that is compiled, build scripts' included.
fn compiled(root: &Path) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package", "isovec", "--edges", "normal,build"])
        .args(["--target", "x86_64-unknown-linux-gnu", "--prefix", "none"])
        .args(["--format", "{p}", "--locked"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(
        tree.status.success(),
        "{}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates = tree.lines().filter(|line| !line.is_empty());
    let named = crates.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    named.collect()
}

#[test]
fn a_program_that_adds_isovec_compiles_few_crates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crates = compiled(root);
    let isovec = |name: &&String| name.starts_with("isovec");
    assert!(crates.iter().filter(isovec).count() > 1, "{crates:#?}");
    assert!(
        crates.len() <= MOST,
        "{} crates and not {MOST}: is each of them for everybody, or a feature?\n{crates:#?}",
        crates.len()
    );
}
