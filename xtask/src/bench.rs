//! `cargo xtask bench`: the benchmarks of the workspace, and the peers beside them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::metadata::packages;
use crate::process::{Run, cargo};
use crate::setup::Browser;
use crate::workspace::Workspace;
use crate::{build, demo, peer_modules, report, setup};

/// One benchmark.
enum Bench {
    /// A `[[bench]]` target of a package.
    Cargo {
        package: String,
        name: String,
        /// Features of the package that the target wants.
        features: Vec<String>,
    },
    /// An ignored test that measures what is private to the SDK.
    Inside {
        name: &'static str,
        test: &'static str,
    },
    /// A script under `benches/peers`, for node or Python.
    Peer {
        name: String,
        program: &'static str,
        script: PathBuf,
    },
    /// A folder under `benches` with npm packages of its own, whose `bench.mjs` measures the npm
    /// package in a browser.
    Page { name: String, folder: PathBuf },
    /// `benches/wasm`: warmed runs of the npm package and its peers, with the packages and the
    /// helpers of `benches/page`.
    Wasm { benches: PathBuf },
}

/// Names, and the tests that they stand for.
const INSIDE: [(&str, &str); 2] = [
    (
        "stream",
        "stream::tests::ten_million_texts_take_no_more_memory_than_a_hundred_thousand",
    ),
    ("scheduler", "batcher::queue::tests::what_a_text_costs"),
];

/// Benchmarks that need the corpus, or programs to compare with.
const PEERS: [&str; 7] = [
    "adaptive",
    OBSERVING,
    "peers",
    "python",
    "rerank",
    "retrieval",
    "static_embeddings",
];

/// The benchmark that runs the program.
const OBSERVING: &str = "observing";

/// The folders that measure transformers.js, whose model Python makes: in a browser and in node.
const TRANSFORMERS: [&str; 2] = ["transformers", "node"];

/// The folder that measures the page itself.
const LIGHTHOUSE: &str = "lighthouse";

/// The script of a folder that measures in a browser.
const PAGE_SCRIPT: &str = "bench.mjs";

impl Bench {
    fn name(&self) -> &str {
        match self {
            Self::Cargo { name, .. } | Self::Peer { name, .. } | Self::Page { name, .. } => name,
            Self::Inside { name, .. } => name,
            Self::Wasm { .. } => "wasm",
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Cargo { package, .. } => format!("a benchmark of {package}"),
            Self::Inside { .. } => "a measurement inside the SDK".to_owned(),
            Self::Peer { .. } => "a peer, measured the same way".to_owned(),
            Self::Page { .. } => "the npm package and its peer, in one browser".to_owned(),
            Self::Wasm { .. } => {
                "the npm package and its peers, warmed, in a browser and in node".to_owned()
            }
        }
    }

    /// The set-up steps without which it cannot run.
    fn needs(&self) -> &'static [&'static str] {
        match self {
            Self::Cargo { name, .. } if PEERS.contains(&name.as_str()) => setup::PEERS,
            Self::Cargo { .. } | Self::Peer { .. } => setup::DEMO,
            Self::Page { name, .. } if TRANSFORMERS.contains(&name.as_str()) => setup::TRANSFORMERS,
            Self::Page { .. } => setup::PAGE,
            Self::Wasm { .. } => setup::WASM,
            Self::Inside { .. } => &[],
        }
    }

    fn run(&self, workspace: &Workspace, args: &[String]) -> Result<()> {
        let run = match self {
            Self::Cargo {
                package,
                name,
                features,
            } => {
                let features: Vec<_> = features.iter().map(|f| format!("{package}/{f}")).collect();
                // By the workspace and not by the package: a package alone has other features of the
                // same dependencies, and all of them would be built once more.
                let run = cargo(workspace)?
                    .args(["bench", "--workspace", "--features", &features.join(",")])
                    .args(["--bench", name, "--"]);
                match name.as_str() {
                    OBSERVING => run.env("ISOVEC_PROGRAM", demo::program(workspace)?),
                    _ => run,
                }
            }
            Self::Inside { test, .. } => cargo(workspace)?
                .args(["test", "--workspace", "--profile", "bench", "--lib", "--"])
                .args(["--ignored", "--exact", "--nocapture", test]),
            Self::Peer {
                program, script, ..
            } => Run::new(workspace, program)?.args([script]),
            Self::Page { folder, name } => {
                let page = folder.with_file_name("page");
                let run = in_browser(workspace, folder, &[&page, folder])?;
                if name == LIGHTHOUSE {
                    build::page(workspace)?;
                }
                run
            }
            Self::Wasm { benches } => {
                let modules = peer_modules::build(workspace, benches)?;
                in_browser(workspace, &benches.join("wasm"), &[&benches.join("page")])?.envs(
                    modules
                        .into_iter()
                        .map(|(name, path)| (name.to_owned(), path.into_os_string())),
                )
            }
        };
        run.args(args).show()
    }
}

/// A folder's script on the npm package as it is now, with the packages of these folders: all of them
/// have the helpers of `page`.
fn in_browser(workspace: &Workspace, folder: &Path, packages: &[&Path]) -> Result<Run> {
    for packages in packages {
        setup::install_packages(workspace, packages, "npm-bench-page")?;
    }
    build::npm(workspace)?;
    let run = Run::new(workspace, "node")?
        .args([folder.join(PAGE_SCRIPT)])
        .env("CHROME", Browser::find(workspace)?.program)
        .env("ISOVEC_PROGRAM", demo::program(workspace)?);
    // Only one of them asks for it, and set-up has brought it then.
    Ok(match setup::find_firefox(workspace) {
        Ok(firefox) => run.env("FIREFOX", firefox.program),
        Err(_) => run,
    })
}

/// Runs the named benchmarks, or all; `true` when none failed.
pub(crate) fn run(
    workspace: &Workspace,
    names: &[String],
    list: bool,
    args: &[String],
) -> Result<bool> {
    let benches = find(workspace)?;
    if list {
        for bench in &benches {
            println!("{}", bench.name());
        }
        return Ok(true);
    }
    for name in names {
        if !benches.iter().any(|bench| bench.name() == name) {
            let known: Vec<_> = benches.iter().map(Bench::name).collect();
            bail!(
                "there is no benchmark {name:?}; there are {}",
                known.join(", ")
            );
        }
    }
    let chosen: Vec<_> = benches
        .iter()
        .filter(|bench| names.is_empty() || names.iter().any(|name| name == bench.name()))
        .collect();
    if chosen.is_empty() {
        bail!("there are no benchmarks in this clone");
    }
    let needs: Vec<_> = chosen
        .iter()
        .flat_map(|bench| bench.needs())
        .copied()
        .collect();
    setup::run(workspace, &needs)?;
    let mut failed = Vec::new();
    for (at, bench) in chosen.iter().enumerate() {
        report::step(at + 1, chosen.len(), bench.name(), &bench.what());
        if let Err(error) = bench.run(workspace, args) {
            report::word(&format!("FAILED: {error:#}"));
            failed.push(bench.name());
        }
    }
    if !failed.is_empty() {
        println!("\nfailed: {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

fn find(workspace: &Workspace) -> Result<Vec<Bench>> {
    let mut benches = cargo_benches(&packages(workspace)?);
    benches.extend(INSIDE.map(|(name, test)| Bench::Inside { name, test }));
    let folder = workspace.root.join("benches");
    benches.extend(pages(&folder)?);
    if folder.join("wasm").join(PAGE_SCRIPT).is_file() {
        benches.push(Bench::Wasm {
            benches: folder.clone(),
        });
    }
    benches.extend(peers(&folder.join("peers"))?);
    Ok(benches)
}

fn cargo_benches(packages: &[Value]) -> Vec<Bench> {
    let mut benches = Vec::new();
    for package in packages {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_bench = target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|k| k == "bench"));
            if let (true, Some(package), Some(name)) =
                (is_bench, package["name"].as_str(), target["name"].as_str())
            {
                let features = target["required-features"].as_array();
                let features = features.into_iter().flatten().filter_map(Value::as_str);
                benches.push(Bench::Cargo {
                    package: package.to_owned(),
                    name: name.to_owned(),
                    features: features.map(str::to_owned).collect(),
                });
            }
        }
    }
    benches
}

/// The folders with a `package.json` and the script that it is for.
fn pages(folder: &Path) -> Result<Vec<Bench>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut pages = Vec::new();
    for entry in folder
        .read_dir()
        .with_context(|| format!("{} cannot be read", folder.display()))?
    {
        let folder = entry?.path();
        let whole = ["package.json", PAGE_SCRIPT]
            .iter()
            .all(|name| folder.join(name).is_file());
        if let (true, Some(name)) = (whole, folder.file_name().and_then(|n| n.to_str())) {
            pages.push(Bench::Page {
                name: name.to_owned(),
                folder: folder.clone(),
            });
        }
    }
    pages.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(pages)
}

/// `.mjs` runs under node, `.py` under Python; names that begin with `_` are helpers.
fn peers(folder: &Path) -> Result<Vec<Bench>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut peers = Vec::new();
    for entry in folder
        .read_dir()
        .with_context(|| format!("{} cannot be read", folder.display()))?
    {
        let script = entry?.path();
        let program = match script.extension().and_then(|e| e.to_str()) {
            Some("mjs") => "node",
            Some("py") => "python3",
            _ => continue,
        };
        match script.file_stem().and_then(|s| s.to_str()) {
            Some(stem) if !stem.starts_with('_') => {
                peers.push(Bench::Peer {
                    name: format!("peers/{stem}"),
                    program,
                    script,
                });
            }
            _ => {}
        }
    }
    peers.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn benches_are_told_from_other_targets() {
        let packages = [json!({"name": "isovec", "targets": [
            {"name": "isovec", "kind": ["lib"]}, {"name": "overhead", "kind": ["bench"]}]})];
        let names: Vec<String> = cargo_benches(&packages)
            .iter()
            .map(|b| b.name().to_owned())
            .collect();
        assert_eq!(names, ["overhead"]);
    }

    /// A test that is not there passes with nothing run.
    #[test]
    fn the_tests_that_measure_are_there() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
        for (_, test) in INSIDE {
            let (module, name) = test.split_once("::tests::").unwrap();
            let path = source.join(module.replace("::", "/"));
            let files = [path.join("tests.rs"), path.with_extension("rs")];
            let texts = files
                .iter()
                .filter_map(|file| std::fs::read_to_string(file).ok());
            let there = texts
                .into_iter()
                .any(|text| text.contains(&format!("fn {name}(")));
            assert!(there, "{test}");
        }
    }

    #[test]
    fn peers_are_scripts_and_helpers_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ort_web.mjs", "ort.py", "_texts.py", "README.md"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let names: Vec<String> = peers(dir.path())
            .unwrap()
            .iter()
            .map(|b| b.name().to_owned())
            .collect();
        assert_eq!(names, ["peers/ort", "peers/ort_web"]);
        assert!(peers(&dir.path().join("none")).unwrap().is_empty());
    }
    #[test]
    fn pages_are_folders_with_packages_and_a_script() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "page/package.json",
            "page/bench.mjs",
            "native/Cargo.toml",
            "half/bench.mjs",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = pages(dir.path()).unwrap();
        let names: Vec<&str> = found.iter().map(Bench::name).collect();
        assert_eq!(names, ["page"]);
        assert_eq!(found[0].needs(), setup::PAGE);
        assert!(pages(&dir.path().join("none")).unwrap().is_empty());
    }
}
