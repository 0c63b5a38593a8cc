//! The ONNX project's tests on every engine, each held to its list.

use std::path::Path;

use isovec_nodes::cases::{Case, folder};
use isovec_nodes::lists::{Verdict, hold};
use isovec_nodes::{engines, engines::run_all};

fn check(engine: &str, run: Option<&dyn Fn(&Case) -> Verdict>, folder: &Path) {
    if let Some(run) = run {
        hold(engine, &run_all(folder, run));
    }
}

#[test]
fn onnxruntime_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    let run = engines::onnxruntime();
    check("onnxruntime", run.as_ref().map(|run| run as _), &folder);
}

#[test]
fn tract_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    check("tract", Some(&engines::tract()), &folder);
}

#[test]
fn portable_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    check("portable", Some(&engines::portable()), &folder);
}

#[test]
fn wgpu_passes_what_it_did() {
    let Some(folder) = folder() else { return };
    let run = engines::wgpu(&folder);
    check("wgpu", run.as_ref().map(|run| run as _), &folder);
}
