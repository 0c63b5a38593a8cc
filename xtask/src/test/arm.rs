//! The kernels on an ARM processor, in an emulator.

use std::env::consts;

use anyhow::Result;

use super::{Check, Verdict};
use crate::process::cargo;
use crate::setup::arm::{EMULATOR, LINKER, TARGET, has_arm};
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "arm",
    what: "the kernels of 64-bit ARM, in an emulator",
    concerned: |broken| PACKAGES.iter().any(|package| broken.in_code_of(package)),
    own: Some(|broken| {
        PACKAGES
            .iter()
            .any(|package| broken.in_own_code_of(package))
    }),
    needs: &["arm"],
    run,
}];

/// Those with code of their own for it.
const PACKAGES: [&str; 2] = ["isovec-kernels", "isovec-pixels"];

fn run(workspace: &Workspace) -> Result<Verdict> {
    if consts::ARCH == "aarch64" {
        return Ok(Verdict::Skipped("`native` runs them here".to_owned()));
    }
    if !has_arm(workspace) {
        return Ok(Verdict::Skipped(
            "there is no emulator, linker or standard library for it".to_owned(),
        ));
    }
    let variable = TARGET.replace('-', "_");
    let upper = variable.to_uppercase();
    cargo(workspace)?
        .args(["test", "--target", TARGET])
        .args(PACKAGES.iter().flat_map(|package| ["--package", package]))
        .env(format!("CC_{variable}"), LINKER)
        .env(format!("CARGO_TARGET_{upper}_LINKER"), LINKER)
        // A processor with all instructions that the kernels can use.
        .env(
            format!("CARGO_TARGET_{upper}_RUNNER"),
            format!("{EMULATOR} -cpu max -L /usr/aarch64-linux-gnu"),
        )
        .show()?;
    Ok(Verdict::Passed)
}
