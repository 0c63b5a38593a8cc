//! A program that uses fastembed and isovec at once: both bring `ort`, and they have to agree.

use anyhow::Result;

use super::{Check, Verdict};
use crate::process::cargo;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "fastembed",
    what: "a program with fastembed and isovec side by side links and runs, in either order",
    concerned: |broken| broken.in_code_of("with-fastembed"),
    own: Some(|broken| {
        broken.in_manifests()
            || broken.in_own_code_of("isovec-native")
            || broken.in_own_code_of("with-fastembed")
    }),
    needs: &["onnxruntime", "model"],
    run,
}];

/// What brings fastembed in.
pub(super) const FEATURE: &str = "with-fastembed/fastembed";

fn run(workspace: &Workspace) -> Result<Verdict> {
    // The whole workspace, for the features that `native` builds with: tract is there already.
    // Only what fastembed's features reach (ort, tokenizers, the crates on top) is built anew.
    cargo(workspace)?
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(["--features", FEATURE])
        .args(["--test", "fastembed_first", "--test", "isovec_first"])
        // Set-up brought both, so that a test which finds neither has not been run.
        .env("ISOVEC_REQUIRE_ONNXRUNTIME", "1")
        .env("ISOVEC_REQUIRE_MODELS", "1")
        .show()?;
    Ok(Verdict::Passed)
}
