//! The add-on of the npm package: built, tested by what tests the package in node, and installed beside the package.

use anyhow::{Context, Result};

use super::changed::Broken;
use super::{Check, Verdict};
use crate::process::npm;
use crate::setup::{self, Browser};
use crate::workspace::Workspace;
use crate::{build, demo};

pub(super) const CHECKS: &[Check] = &[Check {
    name: "node",
    what: "the npm package computes natively in node and Bun: its own tests and those of the add-on, from the sources and installed",
    concerned: Broken::in_node_package,
    own: Some(Broken::in_own_node_package),
    needs: setup::NODE,
    run,
}];

fn run(workspace: &Workspace) -> Result<Verdict> {
    build::npm(workspace)?;
    let program = demo::program(workspace)?;
    let package = build::node(workspace, "dev")?;
    // What other runs kept would be taken for what this one computes.
    let kept = tempfile::tempdir().context("cannot make a folder")?;
    let browser = Browser::find(workspace)?;
    npm(workspace)?
        .args(["run", "test:node"])
        .env("CHROME", &browser.program)
        .env("ISOVEC_CACHE", kept.path())
        .env("ISOVEC_NATIVE", package.join("isovec.node"))
        .env("ISOVEC_REQUIRE_NATIVE", "1")
        .env("ISOVEC_TEST_PROGRAM", program)
        .env("ISOVEC_TEST_ONNXRUNTIME", workspace.onnxruntime())
        // The same vectors to the last bit are those of the portable engine.
        .env("ORT_DYLIB_PATH", "")
        .within(&workspace.js())
        .show()?;
    Ok(Verdict::Passed)
}
