//! Type-checks the published crates for systems other than this one. The workflow builds and tests on them; this
//! finds a broken `use` before it gets there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::changed::Broken;
use super::{Check, Verdict};
use crate::process::{Run, cargo};
use crate::wasm::host;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[Check {
    name: "cross",
    what: "type-check for Windows, macOS and Linux on ARM",
    concerned: Broken::in_code,
    own: Some(|broken| broken.in_manifests() || broken.in_own_code_of("isovec-native")),
    needs: &[],
    run: cross,
}];

const TARGETS: [&str; 3] = [
    "x86_64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "aarch64-unknown-linux-gnu",
];

/// Packages that are used on developers' machines or in browsers only.
const ELSEWHERE: [&str; 13] = [
    "xtask",
    "isovec-js",
    "isovec-js-advisor",
    "isovec-js-image",
    "isovec-js-error",
    "isovec-bench",
    "isovec-parity",
    "isovec-test-models",
    "isovec-test-operators",
    "isovec-test-server",
    "isovec-test-support",
    "isovec-types",
    "with-fastembed",
];

fn cross(workspace: &Workspace) -> Result<Verdict> {
    if std::env::consts::OS == "windows" {
        return Ok(Verdict::Skipped(
            "it takes a shell; the workflow's machines check each other".to_owned(),
        ));
    }
    let version = Run::new(workspace, "rustc")?.args(["-vV"]).read()?;
    let host = host(&version);
    // What this machine is, the other checks cover.
    let wanted = TARGETS.into_iter().filter(|target| host != Some(target));
    let (present, missing) = standard_libraries(workspace, wanted.collect())?;
    if !present.is_empty() {
        check(workspace, &present)?;
    }
    if missing.is_empty() {
        return Ok(Verdict::Passed);
    }
    // Building them from source would work as well, with Debian's compiler; a single target took
    // more than 8 minutes that way.
    Ok(Verdict::Skipped(format!(
        "rustup cannot bring the standard library of {}",
        missing.join(", ")
    )))
}

/// The targets whose standard library the toolchain in use has or gets, and the others.
fn standard_libraries(
    workspace: &Workspace,
    wanted: Vec<&'static str>,
) -> Result<(Vec<&'static str>, Vec<&'static str>)> {
    let list = Run::new(workspace, "rustup")?
        .args(["target", "list", "--installed"])
        .read()
        .unwrap_or_default();
    let installed: BTreeSet<&str> = list.lines().collect();
    let (mut present, mut missing) = (Vec::new(), Vec::new());
    for target in wanted {
        let has = installed.contains(target)
            || Run::new(workspace, "rustup")?
                .args(["target", "add", target])
                .attempt()
                .logged(workspace, "rustup")
                .is_ok();
        if has { &mut present } else { &mut missing }.push(target);
    }
    Ok((present, missing))
}

/// One run for all targets: what is compiled for this machine is then compiled once, and no
/// processor waits for the end of one target's chain of crates.
fn check(workspace: &Workspace, targets: &[&str]) -> Result<()> {
    let mut run = cargo(workspace)?.args(["check", "--workspace"]);
    for package in ELSEWHERE {
        run = run.args(["--exclude", package]);
    }
    // Some dependencies compile C or assembly in their build scripts. A check links nothing and
    // looks into no object file, so tools that do nothing serve for a target that this machine
    // has no C compiler for.
    let archiver = hollow_archiver(workspace)?;
    for target in targets {
        let suffix = target.replace('-', "_");
        run = run
            .args(["--target", target])
            .env(format!("CC_{suffix}"), "true")
            .env(format!("CXX_{suffix}"), "true")
            .env(format!("AR_{suffix}"), &archiver);
    }
    run.show()
}

/// An archiver that makes empty archives: build scripts want to see a file.
fn hollow_archiver(workspace: &Workspace) -> Result<PathBuf> {
    let path = workspace.cache.join("probe").join("ar");
    let script = "#!/bin/sh\n\
        for word in \"$@\"; do\n\
        case \"$word\" in\n\
        -out:* | /out:*) : > \"${word#*:}\" ;;\n\
        *.a | *.lib) : > \"$word\" ;;\n\
        esac\n\
        done\n";
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&path, script).with_context(|| format!("cannot write {}", path.display()))?;
    Run::new(workspace, "chmod")?
        .args(["+x"])
        .args([&path])
        .read()?;
    Ok(path)
}
