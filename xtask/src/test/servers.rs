//! The server and the router with what they have only if it is asked for: TLS, and traces.

use anyhow::Result;

use super::{Check, Verdict};
use crate::process::cargo;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "servers",
    what: "the server, the router and the program with TLS, and with traces for a collector",
    concerned: |broken| broken.in_code_of("isovec-route") || broken.in_code_of("isovec-cli"),
    own: Some(|broken| OWN.iter().any(|package| broken.in_own_code_of(package))),
    needs: &["onnxruntime"],
    run,
}];

/// The packages that are this check's own: what they have beyond it, others test.
const OWN: [&str; 3] = ["isovec-http", "isovec-route", "isovec-serve"];

/// What brings both in, in all crates that have them.
pub(super) const FEATURES: &str = "isovec-cli/otlp,isovec-cli/tls";

fn run(workspace: &Workspace) -> Result<Verdict> {
    // The whole workspace, for the features that `native` builds with.
    cargo(workspace)?
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(["--features", FEATURES])
        .args([
            "--test", "loopback", "--test", "traces", "--test", "program",
        ])
        .env("ISOVEC_REQUIRE_ONNXRUNTIME", "1")
        .show()?;
    Ok(Verdict::Passed)
}
