//! Type-checking for systems other than this one. The workflow builds and tests on them; this
//! finds a broken `use` before it gets there.

use std::collections::BTreeSet;

use anyhow::Result;

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

/// The crates that run natively.
const CRATES: &[&str] = &[
    "isovec-engine",
    "isovec-native",
    "isovec-web",
    "isovec",
    "isovec-cli",
];

fn check(workspace: &Workspace, target: &str) -> Result<Verdict> {
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
    // looks into no object file, so a compiler that does nothing serves for a target that this
    // machine has no C compiler for.
    let suffix = target.replace('-', "_");
    for tool in ["CC", "CXX", "AR"] {
        run = run.env(format!("{tool}_{suffix}"), "true");
    }
    run.show()?;
    Ok(Verdict::Passed)
}
