//! `cargo xtask bench`: the benchmarks of the workspace, and the peers beside them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{Run, cargo};
use crate::workspace::Workspace;
use crate::{report, setup};

/// One benchmark.
enum Bench {
    /// A `[[bench]]` target of a package.
    Cargo { package: String, name: String },
    /// A script under `benches/peers`, for node or Python.
    Peer {
        name: String,
        program: &'static str,
        script: PathBuf,
    },
}

impl Bench {
    fn name(&self) -> &str {
        match self {
            Self::Cargo { name, .. } | Self::Peer { name, .. } => name,
        }
    }
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
    setup::run(workspace, setup::DEMO)?;
    let mut failed = Vec::new();
    for (at, bench) in chosen.iter().enumerate() {
        let (what, run) = match bench {
            Bench::Cargo { package, name } => (
                format!("a benchmark of {package}"),
                cargo(workspace)?
                    .args(["bench", "--package", package, "--bench", name, "--"])
                    .args(args),
            ),
            Bench::Peer {
                program, script, ..
            } => (
                "a peer, measured the same way".to_owned(),
                Run::new(workspace, program)?.args([script]).args(args),
            ),
        };
        report::step(at + 1, chosen.len(), bench.name(), &what);
        if let Err(error) = run.show() {
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
    let text = cargo(workspace)?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .read()?;
    let metadata = serde_json::from_str(&text).context("cargo metadata wrote no JSON")?;
    let mut benches = cargo_benches(&metadata)?;
    benches.extend(peers(&workspace.root.join("benches").join("peers"))?);
    Ok(benches)
}

fn cargo_benches(metadata: &Value) -> Result<Vec<Bench>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    let mut benches = Vec::new();
    for package in packages {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_bench = target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|k| k == "bench"));
            if let (true, Some(package), Some(name)) =
                (is_bench, package["name"].as_str(), target["name"].as_str())
            {
                benches.push(Bench::Cargo {
                    package: package.to_owned(),
                    name: name.to_owned(),
                });
            }
        }
    }
    Ok(benches)
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
        let metadata = json!({"packages": [{"name": "isovec", "targets": [
            {"name": "isovec", "kind": ["lib"]}, {"name": "overhead", "kind": ["bench"]}]}]});
        let names: Vec<String> = cargo_benches(&metadata)
            .unwrap()
            .iter()
            .map(|b| b.name().to_owned())
            .collect();
        assert_eq!(names, ["overhead"]);
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
}
