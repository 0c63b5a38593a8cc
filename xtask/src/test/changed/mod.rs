//! Finds the checks that a change can break: from the files that differ, over the packages that see them.
//!
//! A package sees its own files, the packages that it depends on, and the files elsewhere that its source names
//! (`graph.rs`). A file that belongs to no package and no known folder may break everything.

mod graph;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::metadata::DATAFUSION;
use crate::process::Run;
use crate::workspace::Workspace;

use super::is_module_of_checks;
use super::passed::WHOLE;
use graph::Graph;

/// The packages that are compiled into the npm package.
const IN_PAGES: &[&str] = &["isovec-js", "isovec-js-advisor", "isovec-js-image"];
/// Documents at the root, and the figures: tests of documents read them, nothing is built of them.
const DOCUMENTS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "benches/RESULTS.md",
    "docs/",
];
/// Whose tests read the documents.
const READERS: &[&str] = &["isovec", "isovec-cli", "isovec-types", "xtask"];
/// What the tests of a workspace apart read, besides its own folder.
const READ_APART: &[&str] = &["docs/datafusion.md", "tests/data/"];
/// Scripts that measure, and what they need. No check runs them; tests of xtask look at their names.
const MEASURE: &str = "benches/";
/// Files of xtask, below its sources, of commands that no check runs.
const COMMANDS: &[&str] = &["bench.rs", "peer_modules.rs", "size.rs", "soak.rs"];
/// What no check looks at.
const NOBODY: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", ".gitignore", WHOLE];

/// What a change can break.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Packages whose tests see a file that differs; `None`: all.
    packages: Option<BTreeSet<String>>,
    /// Packages with a file that differs; `None`: all.
    own: Option<BTreeSet<String>>,
    /// Modules of checks that differ.
    checks: BTreeSet<String>,
    /// Of the packages whose tests see a change, whether one is compiled for pages.
    in_pages: bool,
    /// Files of each kind that differ.
    rust: bool,
    manifests: bool,
    documents: bool,
    javascript: bool,
    node: bool,
    python: bool,
    page: bool,
    datafusion: bool,
}

impl Broken {
    /// Whether a package's tests see the change.
    pub(super) fn has(&self, package: &str) -> bool {
        let packages = self.packages.as_ref();
        packages.is_none_or(|packages| packages.contains(package))
    }

    fn everything() -> Self {
        Self {
            packages: None,
            own: None,
            checks: BTreeSet::new(),
            in_pages: true,
            rust: true,
            manifests: true,
            documents: true,
            javascript: true,
            node: true,
            python: true,
            page: true,
            datafusion: true,
        }
    }

    /// Rust's sources differ.
    pub(super) fn in_rust(&self) -> bool {
        self.rust
    }

    /// Manifests differ.
    pub(super) fn in_manifests(&self) -> bool {
        self.manifests
    }

    /// Documents differ.
    pub(super) fn in_documents(&self) -> bool {
        self.documents
    }

    /// Some package sees a file that differs.
    pub(super) fn in_packages(&self) -> bool {
        self.packages.as_ref().is_none_or(|all| !all.is_empty())
    }

    /// The code of some package, or what it is built with, differs.
    pub(super) fn in_code(&self) -> bool {
        self.in_packages() && (self.rust || self.manifests)
    }

    /// The code of this package or of one below it differs.
    pub(super) fn in_code_of(&self, package: &str) -> bool {
        (self.rust || self.manifests) && self.has(package)
    }

    /// The code of this package itself differs, or what everything is built with.
    pub(super) fn in_own_code_of(&self, package: &str) -> bool {
        let own = self.own.as_ref();
        (self.rust || self.manifests) && own.is_none_or(|own| own.contains(package))
    }

    /// The checks of this module (`python`) differ.
    pub(super) fn in_checks_of(&self, module: &str) -> bool {
        self.checks.contains(module)
    }

    /// The code that is compiled for pages differs.
    pub(super) fn in_code_of_pages(&self) -> bool {
        self.in_pages && (self.rust || self.manifests)
    }

    /// The npm package differs.
    pub(super) fn in_npm_package(&self) -> bool {
        self.javascript || self.in_code_of_pages()
    }

    /// The npm package as it computes natively differs.
    pub(super) fn in_node_package(&self) -> bool {
        self.node || self.javascript || self.in_code_of("isovec-node")
    }

    /// The scripts of the npm package differ.
    pub(super) fn in_scripts(&self) -> bool {
        self.javascript
    }

    /// The add-on for node itself differs.
    pub(super) fn in_own_node_package(&self) -> bool {
        self.node || self.in_own_code_of("isovec-node")
    }

    /// The Python package itself differs.
    pub(super) fn in_own_python_package(&self) -> bool {
        self.python || self.in_own_code_of("isovec-python")
    }

    /// The page itself differs.
    pub(super) fn in_own_page(&self) -> bool {
        self.page
    }

    /// The Python package differs.
    pub(super) fn in_python_package(&self) -> bool {
        self.python || self.in_code_of("isovec-python")
    }

    /// The functions for DataFusion differ, or what they stand on.
    pub(super) fn in_datafusion(&self) -> bool {
        self.datafusion || self.in_code_of("isovec")
    }

    /// The page, what it stands on, or the native program that makes its index differs.
    pub(super) fn in_page(&self) -> bool {
        self.page || self.javascript || (self.rust && (self.in_pages || self.has("isovec-cli")))
    }
}

/// What differs from where this clone left `base`: commits since, and what is not committed.
pub(crate) fn since(workspace: &Workspace, base: &str) -> Result<Broken> {
    let start = Run::new(workspace, "git")?
        .args(["merge-base", base, "HEAD"])
        .read()
        .with_context(|| format!("{base:?} names no commit that this one has in common with"))?;
    from(workspace, start.trim())
}

/// What differs from a commit, and what is not committed.
pub(crate) fn from(workspace: &Workspace, commit: &str) -> Result<Broken> {
    let git = |args: &[&str]| Run::new(workspace, "git")?.args(args).read();
    let differs = git(&["diff", "--name-only", "-z", "--no-renames", commit])?;
    let fresh = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let files = differs.split('\0').chain(fresh.split('\0'));
    let files: Vec<&str> = files.filter(|file| !file.is_empty()).collect();
    Ok(broken(&files, &Graph::read(workspace)?))
}

fn broken(files: &[&str], graph: &Graph) -> Broken {
    let mut found = Broken::default();
    let (mut packages, mut readers) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        if NOBODY.contains(file) {
            continue;
        }
        found.datafusion |= READ_APART.iter().any(|read| file.starts_with(read));
        if Path::new(file).starts_with(DATAFUSION) {
            // Of a workspace apart, which the graph does not know.
            found.datafusion = true;
            found.manifests |= file.ends_with("Cargo.toml") || file.ends_with("Cargo.lock");
            found.rust |= file.ends_with(".rs");
            continue;
        }
        // Who names a file sees it, wherever it lies.
        let seen_by = graph.who_names(file);
        let is_document = DOCUMENTS
            .iter()
            .any(|name| file == name || (name.ends_with('/') && file.starts_with(name)));
        if is_document {
            found.documents = true;
            // They are read by tests: whoever depends on a reader depends on nothing of them.
            readers.extend(READERS.iter().map(|&name| name.to_owned()));
            readers.extend(seen_by);
            continue;
        }
        packages.extend(seen_by);
        if file.starts_with("www/") {
            found.page = true;
            continue;
        }
        let Some(owner) = graph.owner(file) else {
            if file.starts_with(MEASURE) {
                readers.insert("xtask".to_owned());
                continue;
            }
            return Broken::everything();
        };
        if owner == "xtask" {
            readers.insert("xtask".to_owned());
            found.rust = true;
            match of_xtask(file) {
                OfXtask::Command => {}
                OfXtask::Checks(module) => {
                    found.checks.insert(module.to_owned());
                }
                // Who changes the checks may change what they say.
                OfXtask::Everything => return Broken::everything(),
            }
            continue;
        }
        found.manifests |= file.ends_with("Cargo.toml");
        if file.starts_with("bindings/js/") && !file.ends_with(".rs") {
            found.javascript = true;
        } else if file.starts_with("bindings/node/") && !file.ends_with(".rs") {
            found.node = true;
        } else if file.starts_with("bindings/python/") && !file.ends_with(".rs") {
            found.python = true;
        } else if !file.ends_with(".md") {
            // Templates, shaders, tables and data are part of the package that they lie in.
            found.rust = true;
        }
        packages.insert(owner.to_owned());
    }
    found.own = Some(packages.clone());
    let mut packages = graph.above(packages);
    let below = graph.below(IN_PAGES.iter().map(|&name| name.to_owned()).collect());
    found.in_pages = packages.iter().any(|name| below.contains(name));
    packages.append(&mut readers);
    found.packages = Some(packages);
    found
}

/// What a file of xtask is part of.
enum OfXtask<'a> {
    /// A command that no check runs.
    Command,
    /// The checks of this module.
    Checks(&'a str),
    /// What checks have in common.
    Everything,
}

fn of_xtask(file: &str) -> OfXtask<'_> {
    let file = file.strip_prefix("xtask/src/").unwrap_or(file);
    if COMMANDS.contains(&file) {
        return OfXtask::Command;
    }
    let module = file
        .strip_prefix("test/")
        .and_then(|file| file.strip_suffix(".rs"));
    match module {
        Some(module) if is_module_of_checks(module) => OfXtask::Checks(module),
        _ => OfXtask::Everything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::checks;

    fn workspace() -> Workspace {
        Workspace::find().unwrap()
    }

    /// The checks that a change of these files asks for.
    fn asked(files: &[&str]) -> BTreeSet<&'static str> {
        let broken = broken(files, &Graph::read(&workspace()).unwrap());
        let all = checks().filter(|check| check.is_concerned(&broken));
        all.map(|check| check.name).collect()
    }

    /// The checks that `--since-passed` leaves to a run of the whole after a change of these files.
    fn left(files: &[&str]) -> BTreeSet<&'static str> {
        let broken = broken(files, &Graph::read(&workspace()).unwrap());
        let all = checks().filter(|check| check.is_concerned(&broken) && !check.is_asked(&broken));
        all.map(|check| check.name).collect()
    }

    #[test]
    fn nothing_breaks_nothing() {
        assert_eq!(asked(&[]), BTreeSet::new());
        assert_eq!(asked(&["LICENSE-MIT"]), BTreeSet::new());
    }

    #[test]
    fn documents_break_what_reads_them() {
        for file in ["README.md", "docs/guide.md", "benches/RESULTS.md"] {
            assert_eq!(asked(&[file]), BTreeSet::from(["book", "native"]), "{file}");
        }
    }

    #[test]
    fn scripts_that_measure_break_only_the_tests_of_their_names() {
        let broken = |file| broken(&[file], &Graph::read(&workspace()).unwrap());
        for file in ["benches/serve/measure.py", "benches/new/bench.mjs"] {
            let found = broken(file);
            assert!(found.has("xtask") && !found.has("isovec"), "{file}");
            assert_eq!(asked(&[file]), BTreeSet::from(["native"]), "{file}");
        }
        let of_a_package = broken("benches/native/src/lib.rs");
        assert!(of_a_package.has("isovec-bench") && !of_a_package.has("xtask"));
    }

    #[test]
    fn what_lies_below_breaks_what_lies_above() {
        let kernels = asked(&["web/kernels/src/lib.rs"]);
        for name in [
            "format", "native", "browser", "npm", "page", "node", "python", "fuzz", "cross",
        ] {
            assert!(kernels.contains(name), "{name}");
        }
        assert!(!kernels.contains("book") && !kernels.contains("deny"));
    }

    #[test]
    fn what_lies_above_breaks_nothing_below() {
        let cli = asked(&["cli/src/main.rs"]);
        for name in ["format", "clippy", "native", "demo", "page", "fuzz"] {
            assert!(cli.contains(name), "{name}");
        }
        for name in [
            "browser",
            "firefox",
            "npm",
            "python",
            "clippy-wasm",
            "fastembed",
        ] {
            assert!(!cli.contains(name), "{name}");
        }
        let native = asked(&["native/src/lib.rs"]);
        assert!(native.contains("fastembed") && native.contains("native"));
    }

    #[test]
    fn a_workspace_apart_has_a_check_of_its_own() {
        let source = asked(&["bindings/datafusion/src/lib.rs"]);
        assert_eq!(source, BTreeSet::from(["datafusion", "format", "machete"]));
        let manifest = asked(&["bindings/datafusion/Cargo.lock"]);
        for name in ["datafusion", "machete", "deny"] {
            assert!(manifest.contains(name), "{name}");
        }
        assert!(!manifest.contains("native") && !manifest.contains("clippy"));
        let chapter = asked(&["docs/datafusion.md"]);
        assert_eq!(chapter, BTreeSet::from(["book", "datafusion", "native"]));
        assert!(asked(&["web/kernels/src/lib.rs"]).contains("datafusion"));
        assert!(!asked(&["cli/src/main.rs"]).contains("datafusion"));
    }

    #[test]
    fn a_script_is_tested_where_scripts_run() {
        let script = asked(&["bindings/js/ts/index.ts"]);
        for name in ["npm", "page", "everywhere", "node"] {
            assert!(script.contains(name), "{name}");
        }
        assert!(!script.contains("browser") && !script.contains("format"));
        let python = asked(&["bindings/python/python/isovec/__init__.py"]);
        assert!(python.contains("python") && !python.contains("format") && !python.contains("npm"));
        let node = asked(&["bindings/node/scripts/build.mjs"]);
        assert!(node.contains("node") && !node.contains("npm") && !node.contains("format"));
        let page = asked(&["www/src/main.ts"]);
        assert!(page.contains("page") && !page.contains("npm"));
    }

    #[test]
    fn a_check_is_left_to_the_whole_unless_its_own_part_differs() {
        let kernels = left(&["web/kernels/src/lib.rs"]);
        for name in ["page", "node", "python", "fuzz", "cross", "everywhere"] {
            assert!(kernels.contains(name), "{name}");
        }
        for name in ["clippy", "native", "browser", "npm", "arm", "firefox"] {
            assert!(!kernels.contains(name), "{name}");
        }
        for (file, name) in [
            ("www/src/main.ts", "page"),
            ("bindings/node/src/lib.rs", "node"),
            ("bindings/python/python/isovec/__init__.py", "python"),
            ("bindings/python/src/lib.rs", "python"),
            ("fuzz/src/lib.rs", "fuzz"),
            ("cli/src/lib.rs", "demo"),
            ("bindings/js/ts/index.ts", "everywhere"),
            ("serve/src/lib.rs", "clients"),
            ("serve/src/lib.rs", "servers"),
            ("native/src/lib.rs", "cross"),
            ("native/Cargo.toml", "crates"),
            ("tests/with-fastembed/Cargo.toml", "fastembed"),
            ("xtask/src/test/python.rs", "python"),
        ] {
            assert!(asked(&[file]).contains(name), "{file}: {name}");
            assert!(!left(&[file]).contains(name), "{file}: {name}");
        }
        assert_eq!(left(&["Cargo.lock"]), BTreeSet::new());
    }

    #[test]
    fn a_command_that_no_check_runs_breaks_its_own_tests_alone() {
        let all = BTreeSet::from([
            "clippy", "cross", "crates", "doc", "format", "machete", "native",
        ]);
        for command in COMMANDS {
            let file = format!("xtask/src/{command}");
            assert!(workspace().root.join(&file).exists(), "{file}");
            assert_eq!(asked(&[&file]), all, "{file}");
        }
        let python = asked(&["xtask/src/test/python.rs"]);
        assert!(python.contains("python") && !python.contains("browser"));
    }

    #[test]
    fn whoever_changes_the_checks_runs_all_of_them() {
        let all: BTreeSet<_> = checks().map(|check| check.name).collect();
        for file in [
            "Cargo.lock",
            "Cargo.toml",
            "xtask/src/main.rs",
            "xtask/src/test/mod.rs",
            ".cargo/config.toml",
            "new",
        ] {
            assert_eq!(asked(&[file]), all, "{file}");
        }
    }

    #[test]
    fn every_check_is_asked_for_by_a_change() {
        let files = [
            "web/kernels/src/lib.rs",
            "web/kernels/Cargo.toml",
            "docs/a.md",
            "bindings/js/ts/a.ts",
        ];
        let all: BTreeSet<_> = checks().map(|check| check.name).collect();
        assert_eq!(asked(&files), all);
    }
}
