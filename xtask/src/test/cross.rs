//! Type-checking for systems other than this one. The workflow builds and tests on them; this
//! finds a broken `use` before it gets there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Check, Verdict};
use crate::process::{Run, cargo};
use crate::report;
use crate::wasm::{DEBIAN_TOOLCHAIN, host};
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "cross-windows",
        what: "type-check for x86_64-pc-windows-msvc",
        needs: &[],
        run: |workspace| check(workspace, "x86_64-pc-windows-msvc"),
    },
    Check {
        name: "cross-macos",
        what: "type-check for aarch64-apple-darwin",
        needs: &[],
        run: |workspace| check(workspace, "aarch64-apple-darwin"),
    },
    Check {
        name: "cross-arm",
        what: "type-check for aarch64-unknown-linux-gnu",
        needs: &[],
        run: |workspace| check(workspace, "aarch64-unknown-linux-gnu"),
    },
];

fn check(workspace: &Workspace, target: &str) -> Result<Verdict> {
    if std::env::consts::OS == "windows" {
        return Ok(Verdict::Skipped(
            "it takes a shell; the workflow's machines check each other".to_owned(),
        ));
    }
    let version = Run::new(workspace, "rustc")?.args(["-vV"]).read()?;
    if host(&version) == Some(target) {
        return Ok(Verdict::Skipped(
            "this machine is one: the other checks cover it".to_owned(),
        ));
    }
    let installed = Run::new(workspace, "rustup")?
        .args(["target", "list", "--installed"])
        .read()
        .is_ok_and(|list| list.lines().collect::<BTreeSet<_>>().contains(target));
    let added = installed
        || Run::new(workspace, "rustup")?
            .args(["target", "add", target])
            .attempt()
            .logged(workspace, "rustup")
            .is_ok();
    let mut run = cargo(workspace)?.args(["check", "--target", target]);
    if !added {
        // Without rustup's server: the standard library's source comes with Debian's compiler.
        let has_source = Run::new(workspace, "rustc")?
            .args(["--print", "sysroot"])
            .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
            .read()
            .is_ok_and(|root| {
                std::path::Path::new(root.trim())
                    .join("lib/rustlib/src/rust/library")
                    .is_dir()
            });
        if !has_source {
            return Ok(Verdict::Skipped(format!(
                "no standard library for {target} can be had here"
            )));
        }
        report::word("no standard library by rustup: checking it from source, too");
        run = run
            .args(["-Zbuild-std=std,panic_abort"])
            .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
            .env("RUSTC_BOOTSTRAP", "1");
    }
    // xtask runs on developers' machines only, isovec-js in browsers only.
    run = run.args([
        "--workspace",
        "--exclude",
        "xtask",
        "--exclude",
        "isovec-js",
    ]);
    // Some dependencies compile C or assembly in their build scripts. A check links nothing and
    // looks into no object file, so tools that do nothing serve for a target that this machine
    // has no C compiler for.
    let archiver = hollow_archiver(workspace)?;
    let suffix = target.replace('-', "_");
    run = run
        .env(format!("CC_{suffix}"), "true")
        .env(format!("CXX_{suffix}"), "true")
        .env(format!("AR_{suffix}"), archiver);
    run.show()?;
    Ok(Verdict::Passed)
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
