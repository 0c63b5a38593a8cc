//! Everything that runs natively: unit, integration and documentation tests on all engines.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
#[cfg(unix)]
use std::os::fd::OwnedFd as Owned;
#[cfg(windows)]
use std::os::windows::io::OwnedHandle as Owned;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::changed::Broken;
use super::{Check, Verdict};
use crate::demo;
use crate::fuzz;
use crate::process::{Run, cargo};
use crate::report;
use crate::setup;
use crate::workspace::{Workspace, which};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "native",
        what: "unit, integration and documentation tests, with all engines and the real model",
        concerned: Broken::in_packages,
        own: None,
        needs: &["onnxruntime", "model", "gpu", "nodes", "ocr"],
        run: native,
    },
    Check {
        name: "demo",
        what: "the demo, as a user runs it",
        concerned: |broken| broken.in_code_of("isovec-cli"),
        own: Some(|broken| broken.in_own_code_of("isovec-cli")),
        needs: &["onnxruntime", "model"],
        run: |workspace| demo::show(workspace).map(|()| Verdict::Passed),
    },
    Check {
        name: "fuzz",
        what: "two minutes of made-up inputs over all fuzz targets, the same each time",
        concerned: |broken| broken.in_code_of("isovec-fuzz"),
        own: Some(|broken| broken.in_own_code_of("isovec-fuzz")),
        needs: setup::FUZZ,
        run: fuzzed,
    },
];

fn fuzzed(workspace: &Workspace) -> Result<Verdict> {
    if !cfg!(unix) {
        return Ok(Verdict::Skipped("it needs a Unix shell".into()));
    }
    if std::env::var_os("CXX").is_none() && which(workspace, "c++").is_none() {
        return Ok(Verdict::Skipped(
            "there is no C++ compiler to build libFuzzer with".into(),
        ));
    }
    if !fuzz::run(workspace, &fuzz::Options::check())? {
        bail!("a target failed; its input stands above");
    }
    Ok(Verdict::Passed)
}

fn native(workspace: &Workspace) -> Result<Verdict> {
    // One failed test binary must not hide what the others would say.
    cargo(workspace)?
        .args(["test", "--workspace", "--no-fail-fast"])
        .envs(required(workspace))
        .show()?;
    Ok(Verdict::Passed)
}

/// The tests of some packages. Everything is compiled as for all of them, because features of dependencies are those
/// that all packages together want: naming packages would compile the dependencies anew.
pub(super) fn part(workspace: &Workspace, broken: &Broken) -> Result<Verdict> {
    // Who changes how tests are run may change what all of them say.
    if broken.in_checks_of("native") {
        return native(workspace);
    }
    let messages = cargo(workspace)?
        .args(["test", "--workspace", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .read_beside()?;
    let mut failed = Vec::new();
    for test in programs(&messages)? {
        if !broken.has(&test.package) {
            continue;
        }
        let run = Run::new(workspace, &test.program)?
            .envs(required(workspace))
            // As cargo does.
            .env("CARGO_MANIFEST_DIR", &test.folder)
            .within(&test.folder);
        if let Err(error) = show(run, &test) {
            failed.push(format!("{error:#}"));
        }
    }
    let mut documentation = cargo(workspace)?.args(["test", "--workspace", "--doc"]);
    documentation = documentation.args(["--no-fail-fast"]);
    if let Err(error) = documentation.envs(required(workspace)).show() {
        failed.push(format!("{error:#}"));
    }
    match &failed[..] {
        [] => Ok(Verdict::Passed),
        failed => bail!("{}", failed.join("; ")),
    }
}

/// proptest's variable, and its value where the caller sets none: a change is judged by the same cases each time. `fuzz`
/// and a run of one's own without the variable look for others.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20261126");

/// Set-up has brought them: a test that does not find one fails instead of being skipped.
fn required(workspace: &Workspace) -> Vec<(String, OsString)> {
    let flag = |there: bool| if there { "1" } else { "0" };
    let (name, usual) = SEED;
    let seed = std::env::var_os(name).unwrap_or(usual.into());
    let flags = [
        ("ISOVEC_REQUIRE_GPU", flag(setup::has_gpu(workspace))),
        (
            "ISOVEC_REQUIRE_NODE_TESTS",
            flag(setup::has_node_tests(workspace)),
        ),
        ("ISOVEC_REQUIRE_OCR", flag(setup::has_ocr(workspace))),
        ("ISOVEC_REQUIRE_ONNXRUNTIME", "1"),
        ("ISOVEC_REQUIRE_MODELS", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.into()));
    flags.into_iter().chain([(name.to_owned(), seed)]).collect()
}

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    package: String,
    folder: PathBuf,
    program: PathBuf,
}

/// Runs a program of tests with its output shown. The error names the tests that failed.
fn show(run: Run, test: &Program) -> Result<()> {
    report::command(&test.program.display().to_string());
    let (output, writer) = std::io::pipe().context("cannot make a pipe")?;
    let mut child = run.start(File::from(Owned::from(writer)))?;
    let mut failed = Vec::new();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read what the tests say")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        failed.extend(failed_test(&line).map(str::to_owned));
    }
    let status = child.wait().context("cannot wait for the tests")?;
    if !status.success() {
        let (package, program) = (&test.package, test.program.display());
        let failed = match &failed[..] {
            [] => "it ended before a test had failed".to_owned(),
            failed => failed.join(", "),
        };
        bail!("of {package}, `{program}` failed ({status}): {failed}");
    }
    Ok(())
}

/// The test of which libtest says in this line that it failed.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// The programs of tests that cargo says it compiled (https://doc.rust-lang.org/cargo/reference/external-tools.html).
fn programs(messages: &str) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: Value =
            serde_json::from_str(line).context("cargo wrote a line that is no JSON")?;
        let (Some(program), Some(manifest), true) = (
            message["executable"].as_str(),
            message["manifest_path"].as_str(),
            message["profile"]["test"] == true,
        ) else {
            continue;
        };
        // `path+file:///folder#name@version`, or without the name where it is the folder's.
        let id = message["package_id"].as_str().unwrap_or_default();
        let (place, rest) = id.rsplit_once('#').unwrap_or((id, ""));
        let package = match rest.split_once('@') {
            Some((name, _)) => name,
            None => place.rsplit('/').next().unwrap_or_default(),
        };
        found.push(Program {
            package: package.to_owned(),
            folder: Path::new(manifest)
                .parent()
                .map(PathBuf::from)
                .unwrap_or_default(),
            program: program.into(),
        });
    }
    if found.is_empty() {
        bail!("cargo names no program of tests");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_failed_is_named() {
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        for other in ["test a::b ... ok", "test result: FAILED. 1 passed", "", "x"] {
            assert_eq!(failed_test(other), None, "{other}");
        }
    }

    #[test]
    fn programs_are_read_from_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"path+file:///r#isovec@0.1.0","manifest_path":"/r/Cargo.toml","profile":{"test":true},"executable":"/t/a"}
{"reason":"compiler-artifact","package_id":"path+file:///r/xtask#0.1.0","manifest_path":"/r/xtask/Cargo.toml","profile":{"test":true},"executable":"/t/b"}
{"reason":"compiler-artifact","package_id":"path+file:///r#isovec@0.1.0","manifest_path":"/r/Cargo.toml","profile":{"test":false},"executable":"/t/c"}
{"reason":"compiler-artifact","package_id":"path+file:///r#isovec@0.1.0","manifest_path":"/r/Cargo.toml","profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}"#;
        let program = |package: &str, folder: &str, program: &str| Program {
            package: package.into(),
            folder: folder.into(),
            program: program.into(),
        };
        let expected = [
            program("isovec", "/r", "/t/a"),
            program("xtask", "/r/xtask", "/t/b"),
        ];
        assert_eq!(programs(messages).unwrap(), expected);
        assert!(programs("").is_err() && programs("text").is_err());
    }
}
