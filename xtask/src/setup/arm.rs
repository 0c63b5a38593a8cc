//! What compiles for 64-bit ARM and runs it on this processor, so that ARM's kernels are tested where there is no ARM.

use std::env::consts;

use anyhow::Result;

use super::{Step, apt};
use crate::process::Run;
use crate::workspace::{Workspace, which};

/// What is compiled for.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
/// The linker.
pub(crate) const LINKER: &str = "aarch64-linux-gnu-gcc";
/// The emulator (<https://www.qemu.org/docs/master/user/main.html>).
pub(crate) const EMULATOR: &str = "qemu-aarch64";

pub(super) const STEP: Step = Step {
    name: "arm",
    what: "a linker and an emulator for 64-bit ARM (QEMU), to test ARM's kernels",
    done,
    make: |workspace| {
        apt::install(
            workspace,
            &[
                "qemu-user",
                "gcc-aarch64-linux-gnu",
                "libc6-dev-arm64-cross",
            ],
        )?;
        Run::new(workspace, "rustup")?
            .args(["target", "add", TARGET])
            .attempt()
            .logged(workspace, "rustup")?;
        Ok(done(workspace)?.unwrap_or_else(|| "installed".to_owned()))
    },
    advice: "install QEMU's user mode, a linker for aarch64-linux-gnu, and run `rustup target add \
             aarch64-unknown-linux-gnu`; without them the check `arm` is skipped, everything else works",
    optional: true,
};

/// Whether ARM's tests can run here in an emulator.
pub(crate) fn has_arm(workspace: &Workspace) -> bool {
    is_there(workspace).unwrap_or(false)
}

fn is_there(workspace: &Workspace) -> Result<bool> {
    if which(workspace, EMULATOR).is_none() || which(workspace, LINKER).is_none() {
        return Ok(false);
    }
    let targets = Run::new(workspace, "rustup")?
        .args(["target", "list", "--installed"])
        .read()?;
    Ok(targets.lines().any(|target| target == TARGET))
}

fn done(workspace: &Workspace) -> Result<Option<String>> {
    if consts::OS != "linux" || consts::ARCH == "aarch64" {
        return Ok(Some(
            "this machine needs no emulator, or has none".to_owned(),
        ));
    }
    Ok(is_there(workspace)?.then(|| "the emulator is installed".to_owned()))
}
