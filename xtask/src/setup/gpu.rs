//! A GPU adapter in software, so that GPU code can be tested where there is no GPU.

use std::env::consts;
use std::path::Path;

use anyhow::Result;

use super::{Step, apt};
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "gpu",
    what: "a GPU adapter in software (Mesa's lavapipe), for GPU tests on machines without one",
    done,
    make: |workspace| {
        apt::install(workspace, &["mesa-vulkan-drivers", "libvulkan1"])?;
        Ok(done(workspace)?.unwrap_or_else(|| "installed".to_owned()))
    },
    advice: "install your system's Mesa Vulkan drivers; without an adapter GPU tests are skipped, \
             everything else works",
    optional: true,
};

/// Whether there is an adapter that tests may insist on: elsewhere than on Linux nobody knows.
pub(crate) fn has_gpu(workspace: &Workspace) -> bool {
    consts::OS == "linux" && done(workspace).is_ok_and(|found| found.is_some())
}

fn done(_: &Workspace) -> Result<Option<String>> {
    if consts::OS != "linux" {
        return Ok(Some(format!("{} brings its own adapter", consts::OS)));
    }
    let found = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"]
        .iter()
        .any(|folder| has_driver(Path::new(folder)));
    Ok(found.then(|| "a Vulkan driver is installed".to_owned()))
}

/// Whether a folder names at least one driver to the Vulkan loader.
fn has_driver(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.path().extension().is_some_and(|e| e == "json"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_a_json_file() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_driver(dir.path()));
        assert!(!has_driver(&dir.path().join("none")));
        std::fs::write(dir.path().join("lvp_icd.x86_64.json"), "{}").unwrap();
        assert!(has_driver(dir.path()));
    }
}
