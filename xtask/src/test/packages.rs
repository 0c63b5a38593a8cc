//! What is published: the crates and the npm package.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Check, Verdict};
use crate::process::{Run, cargo, npm};
use crate::report;
use crate::serve::{self, Serving, TEST_PORT};
use crate::setup::{self, Browser};
use crate::workspace::Workspace;
use crate::{build, demo};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "npm",
        what: "the npm package builds, packs with its notices, and passes its tests",
        needs: setup::PAGE,
        run: npm_package,
    },
    Check {
        name: "crates",
        what: "every crate can be packaged for crates.io",
        needs: &[],
        run: crates,
    },
];

fn npm_package(workspace: &Workspace) -> Result<Verdict> {
    build::npm(workspace)?;
    build::pack(workspace)?;
    let browser = Browser::find(workspace)?;
    let serving = Serving::start(TEST_PORT, serve::mounts(workspace))?;
    report::word(&format!("serving the model at {}/models/", serving.url()));
    npm(workspace)?
        .args(["test"])
        .env("CHROME", &browser.program)
        .env("ISOVEC_TEST_EXPORTS", exports(workspace)?)
        .within(&workspace.js())
        .show()?;
    Ok(Verdict::Passed)
}

/// The model in every form that `isovec export` writes, in a folder for each.
fn exports(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("exports");
    let program = demo::program(workspace)?;
    for dtype in ["f32", "f16", "int8"] {
        Run::new(workspace, &program)?
            .args(["export", "--dtype", dtype, "--model"])
            .args([workspace.model()])
            .args(["--out"])
            .args([folder.join(dtype)])
            .read()?;
    }
    Ok(folder)
}

fn crates(workspace: &Workspace) -> Result<Verdict> {
    let mut run = cargo(workspace)?.args(["package", "--workspace", "--no-verify"]);
    let text = cargo(workspace)?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .read()?;
    for name in unpublished(&serde_json::from_str(&text).context("cargo metadata wrote no JSON")?)?
    {
        run = run.args(["--exclude", &name]);
    }
    // A clean clone has to stay clean through all other checks. On a developer's machine, in the
    // middle of a change, the check is about the packages.
    let changed = Run::new(workspace, "git")?
        .args(["status", "--porcelain"])
        .read()?;
    if std::env::var_os("CI").is_none() && !changed.trim().is_empty() {
        report::word("there are uncommitted changes: packaging them as they are");
        run = run.args(["--allow-dirty"]);
    }
    run.show()?;
    Ok(Verdict::Passed)
}

/// The packages that say `publish = false`.
fn unpublished(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    Ok(packages
        .iter()
        .filter(|package| package["publish"].as_array().is_some_and(Vec::is_empty))
        .filter_map(|package| package["name"].as_str())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_published_is_left_out() {
        let metadata = json!({"packages": [
            {"name": "xtask", "publish": []}, {"name": "isovec", "publish": null},
            {"name": "inside", "publish": ["our-registry"]}]});
        assert_eq!(unpublished(&metadata).unwrap(), ["xtask"]);
    }
}
