//! The npm packages that the JavaScript side is built and tested with.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::Step;
use crate::process::npm;
use crate::workspace::{Workspace, which};

pub(super) const STEP: Step = Step {
    name: "npm",
    what: "the npm packages that build and test the JavaScript side (js/node_modules)",
    done,
    make,
    advice: "install Node.js 20 or newer with npm (nodejs.org), then look at the log",
    optional: false,
};

fn done(workspace: &Workspace) -> Result<Option<String>> {
    let js = workspace.js();
    if !js.join("package.json").is_file() {
        bail!("js/package.json is missing: the clone is not whole");
    }
    // npm writes this file last; it is our stamp.
    let stamp = js.join("node_modules/.package-lock.json");
    let fresh = ["package.json", "package-lock.json"]
        .iter()
        .all(|name| !is_newer(&js.join(name), &stamp));
    Ok((stamp.is_file() && fresh)
        .then(|| "js/node_modules is newer than js/package.json".to_owned()))
}

fn make(workspace: &Workspace) -> Result<String> {
    if which(workspace, "npm").is_none() {
        bail!("npm was not found");
    }
    let locked = workspace.js().join("package-lock.json").is_file();
    // `ignore-scripts`: nothing we need downloads or builds while it is installed.
    npm(workspace)?
        .args([
            if locked { "ci" } else { "install" },
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .within(&workspace.js())
        .logged(workspace, "npm")?;
    // npm leaves the stamp alone when it has nothing to add.
    let stamp = workspace.js().join("node_modules/.package-lock.json");
    if let Ok(file) = fs::File::options().append(true).open(&stamp) {
        let _ = file.set_modified(std::time::SystemTime::now());
    }
    Ok("js/node_modules is there".to_owned())
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
