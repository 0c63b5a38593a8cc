//! Everything that runs natively: unit, integration and documentation tests on both engines.

use anyhow::Result;

use super::{Check, Verdict};
use crate::demo;
use crate::process::cargo;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "native",
        what: "unit, integration and documentation tests, with both engines and the real model",
        needs: &["onnxruntime", "model", "gpu"],
        run: native,
    },
    Check {
        name: "demo",
        what: "the demo, as a user runs it",
        needs: &["onnxruntime", "model"],
        run: |workspace| demo::show(workspace).map(|()| Verdict::Passed),
    },
];

fn native(workspace: &Workspace) -> Result<Verdict> {
    // One failed test binary must not hide what the others would say.
    cargo(workspace)?
        .args(["test", "--workspace", "--no-fail-fast"])
        // Set-up has brought both: a test that does not find them fails instead of being skipped.
        .env("ISOVEC_REQUIRE_ONNXRUNTIME", "1")
        .env("ISOVEC_REQUIRE_MODELS", "1")
        .show()?;
    Ok(Verdict::Passed)
}
