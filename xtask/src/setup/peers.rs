//! The Python packages that isovec is measured against, in an environment of their own.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Step, wheel};
use crate::process::Run;
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "peers",
    what: "Python fastembed and onnxruntime, which the benchmarks compare with, and onnx, which quantises for them",
    done: |workspace| {
        let pins = fs::read_to_string(pins(workspace)).unwrap_or_default();
        Ok((pins == PACKAGES.join("\n")).then(|| PACKAGES.join(", ")))
    },
    make,
    advice: "install Python 3 with pip and venv, or name an interpreter that has the packages in PYTHON",
    optional: true,
};

/// By version: figures name them. onnxruntime is the one that the native engine loads.
const PACKAGES: &[&str] = &["fastembed==0.7.4", "onnxruntime==1.31.1", "onnx==1.20.0"];

fn make(workspace: &Workspace) -> Result<String> {
    let folder = workspace.peers();
    Run::new(workspace, wheel::python(workspace)?)?
        .args(["-m", "venv", "--clear"])
        .args([&folder])
        .logged(workspace, "peers")?;
    Run::new(workspace, workspace.peers_python())?
        .args(["-m", "pip", "install", "--disable-pip-version-check"])
        .args(PACKAGES)
        .logged(workspace, "peers")?;
    let pins = pins(workspace);
    fs::write(&pins, PACKAGES.join("\n"))
        .with_context(|| format!("cannot write {}", pins.display()))?;
    Ok(format!("{} has {}", folder.display(), PACKAGES.join(", ")))
}

/// What is written last: the packages are there, these ones.
fn pins(workspace: &Workspace) -> PathBuf {
    workspace.peers().join("pins.txt")
}
