//! What is published: the crates and the npm package.

use anyhow::Result;

use super::{Check, Verdict};
use crate::build;
use crate::process::{Run, cargo, npm};
use crate::report;
use crate::serve::{self, Serving, TEST_PORT};
use crate::setup::Browser;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "npm",
        what: "the npm package builds, packs with its notices, and passes its tests",
        needs: &["model", "wasm32", "wasm-bindgen", "browser", "npm"],
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
        .within(&workspace.js())
        .show()?;
    Ok(Verdict::Passed)
}

fn crates(workspace: &Workspace) -> Result<Verdict> {
    // xtask and isovec-js are not published (npm takes the latter).
    let mut run = cargo(workspace)?.args([
        "package",
        "--workspace",
        "--no-verify",
        "--exclude",
        "xtask",
        "--exclude",
        "isovec-js",
    ]);
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
