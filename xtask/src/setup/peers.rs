//! The Python packages that isovec is measured against, in an environment of their own.

use super::Step;
use super::venv::Venv;
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "peers",
    what: "Python fastembed and onnxruntime, which the benchmarks compare with, and onnx, which quantises for them",
    done: |workspace| Ok(VENV.done(workspace)),
    make: |workspace| VENV.make(workspace),
    advice: "install Python 3 with pip and venv, or name an interpreter that has the packages in PYTHON",
    optional: true,
};

/// By version: figures name them. onnxruntime is the one that the native engine loads.
const VENV: Venv = Venv {
    name: "peers",
    folder: Workspace::peers,
    packages: &["fastembed==0.7.4", "onnxruntime==1.31.1", "onnx==1.20.0"],
};
