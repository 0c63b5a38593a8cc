//! Checks of the published packages: the crates and the npm package.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::changed::Broken;
use super::{Check, Verdict};
use crate::metadata::packages;
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
        concerned: Broken::in_npm_package,
        own: None,
        needs: setup::NPM_TESTS,
        run: npm_package,
    },
    Check {
        name: "page",
        what: "the page builds and passes its tests in Chromium and Firefox, on the real model",
        concerned: Broken::in_page,
        own: Some(Broken::in_own_page),
        needs: setup::PAGE_TESTS,
        run: page,
    },
    Check {
        name: "everywhere",
        what: "the packed npm package in bundlers, an extension, an edge runtime, node, Deno, Bun, Firefox and WebKit",
        concerned: Broken::in_npm_package,
        own: Some(Broken::in_scripts),
        needs: setup::EVERYWHERE,
        run: everywhere,
    },
    Check {
        name: "next",
        what: "the packed npm package in Next.js, which takes 340 MB: only where it is named",
        concerned: Broken::in_npm_package,
        own: None,
        needs: setup::PAGE,
        run: next,
    },
    Check {
        name: "crates",
        what: "every crate can be packaged for crates.io",
        concerned: Broken::in_code,
        own: Some(Broken::in_manifests),
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

fn page(workspace: &Workspace) -> Result<Verdict> {
    build::npm(workspace)?;
    build::page(workspace)?;
    let browser = Browser::find(workspace)?;
    let screenshots = workspace.target.join("screenshots");
    // Two test files write there, and neither knows which is the first.
    std::fs::create_dir_all(&screenshots)?;
    report::word(&format!("screenshots go to {}", screenshots.display()));
    let mut run = npm(workspace)?.args(["run", "test:page"]);
    for (name, program) in firefox(workspace)? {
        run = run.env(name, program);
    }
    run.env("CHROME", &browser.program)
        .env("ISOVEC_SCREENSHOTS", &screenshots)
        .within(&workspace.js())
        .show()?;
    Ok(Verdict::Passed)
}

fn everywhere(workspace: &Workspace) -> Result<Verdict> {
    let variables = firefox(workspace)?;
    packed(workspace, &setup::everywhere(workspace), &variables)
}

/// What tells the tests where Firefox is.
fn firefox(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 2]> {
    let firefox = setup::find_firefox(workspace)?;
    Ok([
        ("FIREFOX", firefox.program),
        ("GECKODRIVER", firefox.driver),
    ])
}

fn next(workspace: &Workspace) -> Result<Verdict> {
    let folder = setup::everywhere(workspace).join("next");
    setup::install_packages(workspace, &folder, "npm-next")?;
    packed(workspace, &folder, &[])
}

/// Runs a folder's tests of the packed package.
fn packed(workspace: &Workspace, folder: &Path, variables: &[(&str, PathBuf)]) -> Result<Verdict> {
    build::npm(workspace)?;
    let browser = Browser::find(workspace)?;
    let mut run = npm(workspace)?
        .args(["test"])
        .env("CHROME", &browser.program)
        .within(folder);
    for (name, program) in variables {
        run = run.env(name, program);
    }
    run.show()?;
    Ok(Verdict::Passed)
}

/// The model in every form that `isovec export` writes, in a folder for each.
fn exports(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("exports");
    let program = demo::program(workspace)?;
    for dtype in ["f32", "f16", "bf16", "int8", "int8-fast"] {
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
    for name in unpublished(&packages(workspace)?) {
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
fn unpublished(packages: &[Value]) -> Vec<String> {
    packages
        .iter()
        .filter(|package| package["publish"].as_array().is_some_and(Vec::is_empty))
        .filter_map(|package| package["name"].as_str())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_published_is_left_out() {
        let packages = [
            json!({"name": "xtask", "publish": []}),
            json!({"name": "isovec", "publish": null}),
            json!({"name": "inside", "publish": ["our-registry"]}),
        ];
        assert_eq!(unpublished(&packages), ["xtask"]);
    }
}
