//! A program that uses fastembed and isovec at once: both bring `ort`, and they have to agree.

use anyhow::Result;

use super::{Check, Verdict};
use crate::process::cargo;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "fastembed",
    what: "a program with fastembed and isovec side by side links and runs",
    needs: &["onnxruntime", "model"],
    run: |workspace| {
        run(workspace)?;
        Ok(Verdict::Passed)
    },
}];

fn run(workspace: &Workspace) -> Result<()> {
    let manifest = workspace.root.join("tests/with-fastembed/Cargo.toml");
    cargo(workspace)?
        .args(["test", "--manifest-path"])
        .args([manifest])
        .show()
}
