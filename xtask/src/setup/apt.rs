//! Debian's packages, where there are any.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use crate::process::Run;
use crate::workspace::{Workspace, which};

/// Whether the package lists were fetched in this run: once is enough.
static UPDATED: AtomicBool = AtomicBool::new(false);

/// Installs packages, or says why it cannot.
pub(super) fn install(workspace: &Workspace, packages: &[&str]) -> Result<()> {
    if which(workspace, "apt-get").is_none() {
        bail!("this machine has no apt-get");
    }
    let as_root = as_root(workspace)?;
    if !UPDATED.load(Ordering::Relaxed) {
        command(workspace, &as_root, &["update"])?;
        UPDATED.store(true, Ordering::Relaxed);
    }
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(packages);
    command(workspace, &as_root, &args)
}

/// What goes in front of a command that needs root: nothing, or sudo.
pub(super) fn as_root(workspace: &Workspace) -> Result<Vec<&'static str>> {
    if Run::new(workspace, "id")?.args(["-u"]).read()?.trim() == "0" {
        return Ok(Vec::new());
    }
    if which(workspace, "sudo").is_none() {
        bail!("this needs root, and this machine has no sudo");
    }
    // Without a terminal nobody could type a password: ask for one now, or fail.
    if !Run::new(workspace, "sudo")?.args(["-n", "true"]).succeeds() {
        Run::new(workspace, "sudo")?.args(["-v"]).show()?;
    }
    Ok(vec!["sudo"])
}

fn command(workspace: &Workspace, as_root: &[&str], args: &[&str]) -> Result<()> {
    let mut words: Vec<&str> = as_root.to_vec();
    words.extend(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]);
    words.extend(args);
    let (program, rest) = words.split_first().unwrap_or((&"apt-get", &[]));
    Run::new(workspace, program)?
        .args(rest)
        .logged(workspace, "apt")
}
