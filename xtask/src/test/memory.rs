//! Tests under tools that check every access to memory: Miri and the sanitizers.

use anyhow::{Result, bail};

use super::{Check, Verdict};
use crate::process::Run;
use crate::report;
use crate::setup::Nightly;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "miri",
        what: "scalar kernels, buffers and the batcher's parts under Miri: only where it is named",
        concerned: |broken| broken.in_rust() && broken.has("isovec"),
        own: None,
        needs: &["miri"],
        run: miri,
    },
    Check {
        name: "sanitizers",
        what: "kernels, buffers and the crew of threads with address and thread sanitizers: only where it is named",
        concerned: |broken| broken.in_rust() && broken.has("isovec"),
        own: None,
        needs: &["miri"],
        run: sanitizers,
    },
];

/// Tests of a package's library, by the beginnings of their names.
struct Part {
    package: &'static str,
    features: &'static [&'static str],
    tests: &'static [&'static str],
    /// Tests that need what an interpreter lacks, or take it minutes.
    without: &'static [&'static str],
}

/// What is no foreign code and no wait for a machine: everything with `unsafe` of its own that one can interpret. Where
/// no instruction set is detected, which is so under Miri, kernels are the scalar ones.
const PARTS: &[Part] = &[
    Part {
        package: "isovec-kernels",
        features: &["--no-default-features"],
        tests: &[
            "gemm::",
            "ragged::",
            "attention::",
            "pool::",
            "norm::",
            "embed::",
        ],
        without: &["proptest", "every_value", "large"],
    },
    Part {
        package: "isovec-pixels",
        features: &[],
        tests: &["resize::"],
        without: &[],
    },
    Part {
        package: "isovec-engine",
        features: &["--no-default-features"],
        tests: &["buffers::", "tensor::", "cancel::"],
        without: &["what_cannot_be_had"],
    },
    Part {
        package: "isovec",
        features: &["--no-default-features"],
        tests: &["batcher::queue::", "batcher::steering::"],
        without: &["what_a_text_costs"],
    },
];

impl Part {
    /// What tells cargo and the test program which tests.
    fn arguments(&self) -> Vec<&'static str> {
        let mut all = vec!["--package", self.package, "--lib"];
        all.extend(self.features);
        all.push("--");
        all.extend(self.tests);
        all.extend(self.without.iter().flat_map(|name| ["--skip", name]));
        all
    }
}

fn nightly(workspace: &Workspace) -> Result<Result<Nightly, Verdict>> {
    Ok(Nightly::find(workspace)?.ok_or_else(|| {
        Verdict::Skipped("there is no nightly toolchain (`cargo xtask setup miri`)".to_owned())
    }))
}

fn miri(workspace: &Workspace) -> Result<Verdict> {
    let nightly = match nightly(workspace)? {
        Ok(nightly) => nightly,
        Err(skipped) => return Ok(skipped),
    };
    if !nightly.has_miri(workspace)? {
        return Ok(Verdict::Skipped(format!(
            "{} has no Miri (`cargo xtask setup miri`)",
            nightly.0
        )));
    }
    each(|part| {
        let run = nightly.cargo(workspace)?.args(["miri", "test"]);
        run.args(part.arguments())
            // Random cases are for where they are fast; some are enough to reach every line.
            .env("PROPTEST_CASES", "4")
            .env(
                "MIRIFLAGS",
                "-Zmiri-disable-isolation -Zmiri-strict-provenance",
            )
            .show()
    })
}

/// The targets that come with the sanitizers' runtime.
const SANITIZED: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

fn sanitizers(workspace: &Workspace) -> Result<Verdict> {
    let nightly = match nightly(workspace)? {
        Ok(nightly) => nightly,
        Err(skipped) => return Ok(skipped),
    };
    let target = SANITIZED
        .into_iter()
        .find(|target| nightly.0.ends_with(target));
    let Some(target) = target else {
        return Ok(Verdict::Skipped(format!(
            "the sanitizers are tried on Linux, and this is {}",
            nightly.0
        )));
    };
    // A folder of its own: what is built here is of no use elsewhere.
    let folder = workspace.target.join("sanitizers");
    let run = |flags: &str, words: &[&str]| -> Result<Run> {
        let run = nightly.cargo(workspace)?;
        Ok(run
            .args(["test", "--target", target])
            .args(words)
            .env("CARGO_TARGET_DIR", &folder)
            .env("RUSTFLAGS", flags))
    };
    each(|part| {
        run("-Zsanitizer=address", &[])?
            .args(part.arguments())
            .show()
    })?;
    // Without instrumentation of its own the library's locks look like races.
    if !nightly.has_source(workspace)? {
        report::word(
            "the thread sanitizer is left out: it needs the library's source (`cargo xtask setup miri`)",
        );
        return Ok(Verdict::Passed);
    }
    each(|part| {
        run("-Zsanitizer=thread", &["-Zbuild-std"])?
            .args(part.arguments())
            .show()
    })
}

/// Runs all parts, and names those that failed.
fn each(run: impl Fn(&Part) -> Result<()>) -> Result<Verdict> {
    let mut failed = Vec::new();
    for part in PARTS {
        if let Err(error) = run(part) {
            report::word(&format!("{error:#}"));
            failed.push(part.package);
        }
    }
    if !failed.is_empty() {
        bail!("tests failed in {}", failed.join(", "));
    }
    Ok(Verdict::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_end_with_what_is_left_out() {
        let part = Part {
            package: "one",
            features: &["--no-default-features"],
            tests: &["a::"],
            without: &["slow"],
        };
        assert_eq!(
            part.arguments().join(" "),
            "--package one --lib --no-default-features -- a:: --skip slow"
        );
    }
}
