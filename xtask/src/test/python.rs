//! The Python package: its wheel, installed beside the libraries that it works with.

use std::fs;

use anyhow::{Context, Result};

use super::changed::Broken;
use super::{Check, Verdict};
use crate::demo;
use crate::process::Run;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "python",
    what: "the Python package builds as a wheel, installs, and passes its tests and the checker of its types",
    concerned: Broken::in_python_package,
    own: Some(Broken::in_own_python_package),
    needs: &["onnxruntime", "model", "ocr", "python"],
    run,
}];

fn run(workspace: &Workspace) -> Result<Verdict> {
    let python = Workspace::interpreter(&workspace.python());
    let sources = workspace.root.join("bindings").join("python");
    let folder = workspace.target.join("python");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let program = demo::program(workspace)?;
    Run::new(workspace, &python)?
        .args(["-m", "maturin", "build", "--profile", "dev"])
        .args(["--interpreter".as_ref(), python.as_os_str()])
        .args(["--out".as_ref(), folder.join("wheel").as_os_str()])
        .within(&sources)
        .show()?;
    // Beside the environment and not in it: clones share the environment.
    let installed = folder.join("installed");
    Run::new(workspace, &python)?
        .args([
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--quiet",
        ])
        .args(["--no-deps", "--no-index", "--find-links"])
        .args([folder.join("wheel")])
        .args([
            "--target".as_ref(),
            installed.as_os_str(),
            "isovec".as_ref(),
        ])
        .show()?;
    Run::new(workspace, &python)?
        .args(["-m", "pytest", "--strict-markers", "-p", "no:cacheprovider"])
        .env("PYTHONPATH", &installed)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MYPY_CACHE_DIR", folder.join("mypy"))
        .env("ISOVEC_TEST_PROGRAM", program)
        .within(&sources)
        .show()?;
    Ok(Verdict::Passed)
}
