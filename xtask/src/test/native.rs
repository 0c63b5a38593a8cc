//! Everything that runs natively: unit, integration and documentation tests on all engines.

use anyhow::{Result, bail};

use super::{Check, Verdict};
use crate::demo;
use crate::fuzz;
use crate::process::cargo;
use crate::setup;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "native",
        what: "unit, integration and documentation tests, with all engines and the real model",
        needs: &["onnxruntime", "model", "gpu", "nodes"],
        run: native,
    },
    Check {
        name: "demo",
        what: "the demo, as a user runs it",
        needs: &["onnxruntime", "model"],
        run: |workspace| demo::show(workspace).map(|()| Verdict::Passed),
    },
    Check {
        name: "fuzz",
        what: "two minutes of made-up inputs over all fuzz targets",
        needs: setup::FUZZ,
        run: fuzzed,
    },
];

fn fuzzed(workspace: &Workspace) -> Result<Verdict> {
    if !fuzz::run(workspace, &fuzz::Options::for_minutes(2.0))? {
        bail!("a target failed; its input stands above");
    }
    Ok(Verdict::Passed)
}

fn native(workspace: &Workspace) -> Result<Verdict> {
    let flag = |there: bool| if there { "1" } else { "0" };
    // One failed test binary must not hide what the others would say.
    cargo(workspace)?
        .args(["test", "--workspace", "--no-fail-fast"])
        // Set-up has brought them: a test that does not find one fails instead of being skipped.
        .env("ISOVEC_REQUIRE_GPU", flag(setup::has_gpu(workspace)))
        .env(
            "ISOVEC_REQUIRE_NODE_TESTS",
            flag(setup::has_node_tests(workspace)),
        )
        .env("ISOVEC_REQUIRE_ONNXRUNTIME", "1")
        .env("ISOVEC_REQUIRE_MODELS", "1")
        .show()?;
    Ok(Verdict::Passed)
}
