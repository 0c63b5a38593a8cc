//! DataFusion's functions, which have a workspace of their own: no other check builds DataFusion.

use anyhow::Result;

use super::changed::Broken;
use super::{Check, Verdict};
use crate::metadata::DATAFUSION;
use crate::process::cargo;
use crate::workspace::{Workspace, which};

pub(super) const CHECKS: &[Check] = &[Check {
    name: "datafusion",
    what: "isovec's functions in the SQL of DataFusion, whose crates nothing else needs: only where it is named",
    concerned: Broken::in_datafusion,
    own: None,
    needs: &[],
    run,
}];

fn run(workspace: &Workspace) -> Result<Verdict> {
    let folder = workspace.root.join(DATAFUSION);
    cargo(workspace)?
        .args(["fmt", "--check"])
        .within(&folder)
        .show()?;
    let mut tests = cargo(workspace)?
        .args(["test", "--locked", "--no-fail-fast"])
        .env("CARGO_BUILD_WARNINGS", "deny")
        .within(&folder);
    // Clippy in place of the compiler, for this workspace's own packages: `cargo clippy` would go through the hundreds of
    // others a second time, because it checks them and builds nothing.
    if let Some(clippy) = which(workspace, "clippy-driver") {
        tests = tests.env("RUSTC_WORKSPACE_WRAPPER", clippy);
    }
    tests.show()?;
    Ok(Verdict::Passed)
}
