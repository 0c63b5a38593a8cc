//! The npm packages that the JavaScript side is built, tested and measured with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::Step;
use crate::process::npm;
use crate::workspace::{Workspace, which};

pub(super) const STEP: Step = Step {
    name: "npm",
    what: "the npm packages that build and test the JavaScript side (bindings/js/node_modules)",
    done,
    make,
    advice: "install Node.js 20 or newer with npm (nodejs.org), then look at the log",
    optional: false,
};

pub(super) const EVERYWHERE: Step = Step {
    name: "everywhere",
    what: "bundlers and runtimes that the npm package is tested in (bindings/js/tests/everywhere/node_modules)",
    done: |workspace| {
        let fresh = fresh(&everywhere(workspace))?;
        Ok(fresh.then(|| "they are newer than what asks for them".to_owned()))
    },
    make: |workspace| {
        install(workspace, &everywhere(workspace), "npm-everywhere")?;
        Ok("bindings/js/tests/everywhere/node_modules is there".to_owned())
    },
    advice: STEP.advice,
    optional: false,
};

pub(super) const CLIENTS: Step = Step {
    name: "npm-clients",
    what: "the npm packages of clients that the server is tested with (serve/tests/clients/node_modules)",
    done: |workspace| {
        let fresh = fresh(&workspace.clients())?;
        Ok(fresh.then(|| "they are newer than what asks for them".to_owned()))
    },
    make: |workspace| {
        install(workspace, &workspace.clients(), "npm-clients")?;
        Ok("serve/tests/clients/node_modules is there".to_owned())
    },
    advice: STEP.advice,
    optional: false,
};

/// The tests of the packed package, which have npm packages of their own.
pub(crate) fn everywhere(workspace: &Workspace) -> PathBuf {
    workspace.js().join("tests").join("everywhere")
}

fn done(workspace: &Workspace) -> Result<Option<String>> {
    Ok(fresh(&workspace.js())?
        .then(|| "bindings/js/node_modules is newer than bindings/js/package.json".to_owned()))
}

fn make(workspace: &Workspace) -> Result<String> {
    install(workspace, &workspace.js(), "npm")?;
    Ok("bindings/js/node_modules is there".to_owned())
}

/// Installs what a folder's `package.json` asks for, unless it is there.
pub(crate) fn install_packages(workspace: &Workspace, folder: &Path, log: &str) -> Result<()> {
    if fresh(folder)? {
        return Ok(());
    }
    install(workspace, folder, log)
}

/// Whether the installed packages are newer than what asks for them.
fn fresh(folder: &Path) -> Result<bool> {
    let manifest = folder.join("package.json");
    if !manifest.is_file() {
        bail!("{} is missing: the clone is not whole", manifest.display());
    }
    let stamp = stamp(folder);
    let fresh = ["package.json", "package-lock.json"]
        .iter()
        .all(|name| !is_newer(&folder.join(name), &stamp));
    Ok(stamp.is_file() && fresh)
}

fn install(workspace: &Workspace, folder: &Path, log: &str) -> Result<()> {
    if which(workspace, "npm").is_none() {
        bail!("npm was not found");
    }
    let locked = folder.join("package-lock.json").is_file();
    // `ignore-scripts`: nothing we need downloads or builds while it is installed.
    npm(workspace)?
        .args([
            if locked { "ci" } else { "install" },
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .within(folder)
        .logged(workspace, log)?;
    // npm leaves the stamp alone when it has nothing to add.
    if let Ok(file) = fs::File::options().append(true).open(stamp(folder)) {
        let _ = file.set_modified(std::time::SystemTime::now());
    }
    Ok(())
}

/// npm writes this file last.
fn stamp(folder: &Path) -> PathBuf {
    folder.join("node_modules/.package-lock.json")
}

/// Whether a file was written after another; a file that is missing is not newer.
fn is_newer(file: &Path, than: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    match (time(file), time(than)) {
        (Some(file), Some(than)) => file > than,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn packages_are_fresh_until_what_asks_for_them_changes() {
        let dir = tempfile::tempdir().unwrap();
        assert!(fresh(dir.path()).is_err());
        let manifest = dir.path().join("package.json");
        fs::write(&manifest, "{}").unwrap();
        assert!(!fresh(dir.path()).unwrap());
        fs::create_dir(dir.path().join("node_modules")).unwrap();
        fs::write(stamp(dir.path()), "{}").unwrap();
        assert!(fresh(dir.path()).unwrap());
        fs::File::options()
            .append(true)
            .open(&manifest)
            .unwrap()
            .set_modified(SystemTime::now() + Duration::from_secs(3600))
            .unwrap();
        assert!(!fresh(dir.path()).unwrap());
    }

    #[test]
    fn newer_means_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        for path in [&old, &new] {
            fs::write(path, "").unwrap();
        }
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        fs::File::options()
            .append(true)
            .open(&old)
            .unwrap()
            .set_modified(hour_ago)
            .unwrap();
        assert!(is_newer(&new, &old));
        assert!(!is_newer(&old, &new));
        assert!(is_newer(&new, &dir.path().join("none")));
        assert!(!is_newer(&dir.path().join("none"), &new));
    }
}
