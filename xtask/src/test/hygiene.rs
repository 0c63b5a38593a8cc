//! Checks of the stated compiler version, of unused dependencies and of licences.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::changed::Broken;
use super::{Check, Verdict};
use crate::metadata::{manifests, packages_of};
use crate::process::{Run, cargo};
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "msrv",
        what: "the oldest compiler that Cargo.toml promises is the one that builds",
        concerned: Broken::in_manifests,
        own: None,
        needs: &[],
        run: msrv,
    },
    Check {
        name: "machete",
        what: "every dependency is used",
        concerned: |broken| broken.in_rust() || broken.in_manifests(),
        own: Some(Broken::in_manifests),
        needs: &["cargo-machete"],
        run: |workspace| {
            Run::new(workspace, "cargo-machete")?
                .args(["--skip-target-dir"])
                .show()?;
            Ok(Verdict::Passed)
        },
    },
    Check {
        name: "deny",
        what: "licences, sources and duplicates of all dependencies",
        concerned: Broken::in_manifests,
        own: Some(Broken::in_manifests),
        needs: &["cargo-deny"],
        // Advisories change by the day and their database lies on a server of its own: the
        // workflow asks it, so that this check gives the same answer offline and tomorrow.
        run: deny,
    },
];

/// Both workspaces, by the same rules.
fn deny(workspace: &Workspace) -> Result<Verdict> {
    let rules = workspace.root.join("deny.toml");
    for manifest in manifests(workspace) {
        Run::new(workspace, "cargo-deny")?
            .args(["--workspace", "--log-level", "error"])
            .args([OsStr::new("--manifest-path"), manifest.as_os_str()])
            .args([OsStr::new("--config"), rules.as_os_str()])
            .args(["check", "licenses", "bans", "sources"])
            .show()?;
    }
    Ok(Verdict::Passed)
}

/// All packages of both workspaces state one version, the workflow builds with it, and it compiles the root's workspace:
/// either because the compiler in use is that version and the other checks used it, or by a check
/// of its own.
fn msrv(workspace: &Workspace) -> Result<Verdict> {
    let mut packages = Vec::new();
    for manifest in manifests(workspace) {
        packages.extend(packages_of(workspace, &manifest)?);
    }
    let stated = stated_version(&packages)?;

    let workflow = workspace.root.join(".github/workflows/ci.yml");
    let workflow_text = std::fs::read_to_string(&workflow)
        .with_context(|| format!("{} cannot be read", workflow.display()))?;
    let line = format!("MSRV: \"{stated}\"");
    if !workflow_text.lines().any(|l| l.trim() == line) {
        bail!(
            "Cargo.toml promises Rust {stated}, but {} does not say {line}",
            workflow.display()
        );
    }

    let used = Run::new(workspace, "rustc")?.args(["--version"]).read()?;
    if is_version(&used, &stated) {
        return Ok(Verdict::Passed);
    }
    let toolchains = Run::new(workspace, "rustup")?
        .args(["toolchain", "list"])
        .read()
        .unwrap_or_default();
    let Some(toolchain) = toolchains
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .find(|name| {
            *name == stated
                || name.starts_with(&format!("{stated}-"))
                || name.starts_with(&format!("{stated}."))
        })
    else {
        return Ok(Verdict::Skipped(format!(
            "Rust {stated} is not installed (`rustup toolchain install {stated}`)"
        )));
    };
    cargo(workspace)?
        .args(["check", "--workspace", "--all-targets"])
        .env("RUSTUP_TOOLCHAIN", toolchain)
        .show()?;
    Ok(Verdict::Passed)
}

/// The one version that all packages state.
fn stated_version(packages: &[Value]) -> Result<String> {
    let mut stated = BTreeSet::new();
    for package in packages {
        match package["rust_version"].as_str() {
            Some(version) => stated.insert(version.to_owned()),
            None => bail!("{} states no rust-version", package["name"]),
        };
    }
    match stated.pop_first() {
        Some(version) if stated.is_empty() => Ok(version),
        _ => bail!("the packages do not state one rust-version"),
    }
}

/// Whether `rustc 1.95.0 (…)` is the version `1.95`.
fn is_version(answer: &str, stated: &str) -> bool {
    answer
        .split_whitespace()
        .nth(1)
        .is_some_and(|version| version == stated || version.starts_with(&format!("{stated}.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_version("rustc 1.95.0 (abc 2026-04-14)", "1.95"));
        assert!(is_version("rustc 1.95.0 (abc 2026-04-14)", "1.95.0"));
        assert!(!is_version("rustc 1.950.0 (abc)", "1.95"));
        assert!(!is_version("rustc 1.96.0 (abc)", "1.95"));
        assert!(!is_version("", "1.95"));
    }

    #[test]
    fn all_packages_have_to_state_the_same_version() {
        let of = |versions: &[Value]| {
            let packages: Vec<Value> = versions
                .iter()
                .map(|v| json!({"name": "p", "rust_version": v}))
                .collect();
            stated_version(&packages)
        };
        assert_eq!(of(&[json!("1.95"), json!("1.95")]).unwrap(), "1.95");
        assert!(of(&[json!("1.95"), json!("1.96")]).is_err());
        assert!(of(&[json!("1.95"), Value::Null]).is_err());
        assert!(of(&[]).is_err());
    }
}
