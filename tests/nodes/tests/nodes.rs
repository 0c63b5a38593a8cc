//! The ONNX project's tests on every engine, each held to its list.

use isovec_nodes::cases::{Case, folder};
use isovec_nodes::lists::{Verdict, hold};
use isovec_nodes::{engines, engines::run_all};

fn check(engine: &str, run: Option<&dyn Fn(&Case) -> Verdict>) {
    if let (Some(run), Some(folder)) = (run, folder()) {
        hold(engine, &run_all(&folder, run));
    }
}

#[test]
fn onnxruntime_passes_what_it_did() {
    let run = engines::onnxruntime();
    check("onnxruntime", run.as_ref().map(|run| run as _));
}

#[test]
fn tract_passes_what_it_did() {
    check("tract", Some(&engines::tract()));
}

#[test]
fn portable_passes_what_it_did() {
    check("portable", Some(&engines::portable()));
}

#[test]
fn wgpu_passes_what_it_did() {
    let run = engines::wgpu();
    check("wgpu", run.as_ref().map(|run| run as _));
}
