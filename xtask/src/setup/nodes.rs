//! The ONNX project's own backend node tests: small graphs with inputs and outputs, out of the wheel of
//! the Python package `onnx`, which ships them as files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::Step;
use super::wheel::{self, Wheel};
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "nodes",
    what: "the ONNX project's 1,653 node tests, which every engine is held to",
    done: |workspace| {
        let folder = workspace.node_tests();
        Ok(check(&folder).is_ok().then(|| folder.display().to_string()))
    },
    make,
    advice: "install Python 3 with pip; or name a folder backend/test/data/node of the Python package onnx \
             1.20.0 in ISOVEC_NODE_TESTS",
    optional: true,
};

/// The tests are the same in the wheels of all platforms; one of them is fetched everywhere.
const WHEEL: Wheel = Wheel {
    requirement: "onnx==1.20.0",
    sha256: "02e0d72ab09a983fce46686b155a5049898558d9f3bc6e8515120d6c40666318",
    platform: Some("manylinux_2_28_x86_64"),
};

/// Where they lie in it.
const IN_WHEEL: &str = "onnx/backend/test/data/node";

/// How many there are.
const TESTS: usize = 1653;

fn make(workspace: &Workspace) -> Result<String> {
    wheel::install_folder(workspace, &WHEEL, IN_WHEEL, check, &workspace.node_tests())
}

/// Whether the tests are there, so that what runs them may insist.
pub(crate) fn has_node_tests(workspace: &Workspace) -> bool {
    check(&workspace.node_tests()).is_ok()
}

/// Counts the tests.
fn check(folder: &Path) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let tests = entries
        .flatten()
        .filter(|entry| entry.path().join("model.onnx").is_file())
        .count();
    if tests != TESTS {
        bail!(
            "{} holds {tests} tests instead of {TESTS}",
            folder.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_all_of_them_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let test = dir.path().join("test_abs");
        fs::create_dir(&test).unwrap();
        fs::write(test.join("model.onnx"), "").unwrap();
        let error = check(dir.path()).unwrap_err().to_string();
        assert!(error.contains("1 tests instead of 1653"), "{error}");
        assert!(check(&dir.path().join("none")).is_err());
    }
}
