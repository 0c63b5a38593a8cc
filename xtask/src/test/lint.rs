//! Form and lints, for the native target and for wasm32.

use anyhow::Result;

use super::changed::Broken;
use super::fastembed::FEATURE as FASTEMBED;
use super::servers::FEATURES as SERVERS;
use super::{Check, Verdict};
use crate::docs;
use crate::process::{Run, cargo};
use crate::report;
use crate::setup;
use crate::wasm::{TARGET, WasmToolchain};
use crate::workspace::{Workspace, which};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "format",
        what: "the sources are formatted",
        concerned: Broken::in_rust,
        own: None,
        needs: &[],
        run: format,
    },
    Check {
        name: "clippy",
        what: "no lint speaks up, natively",
        concerned: Broken::in_code,
        own: None,
        needs: &[],
        run: clippy,
    },
    Check {
        name: "clippy-wasm",
        what: "no lint speaks up, for browsers",
        concerned: Broken::in_code_of_pages,
        own: None,
        needs: &["wasm32"],
        run: clippy_wasm,
    },
    Check {
        name: "doc",
        what: "the documentation builds without a warning",
        concerned: Broken::in_code,
        own: None,
        needs: &[],
        run: doc,
    },
    Check {
        name: "book",
        what: "the book builds, and its pages load nothing from elsewhere",
        concerned: Broken::in_documents,
        own: Some(Broken::in_documents),
        needs: setup::BOOK,
        run: book,
    },
];

/// The crates that browsers run.
const WASM_CRATES: &[&str] = &[
    "isovec-engine",
    "isovec-hub",
    "isovec-model",
    "isovec-optimize",
    "isovec-image",
    "isovec-ocr",
    "isovec-pixels",
    "isovec-tokenize",
    "isovec-kernels",
    "isovec-conv",
    "isovec-encoder",
    "isovec-gpu",
    "isovec-web",
    "isovec",
    "isovec-insight",
    "isovec-js-error",
    "isovec-js",
    "isovec-js-advisor",
    "isovec-js-image",
];
/// What crosses threads natively need not in a browser (`MaybeSend`), and is shared all the same.
const NOT_IN_BROWSERS: &str = "clippy::arc_with_non_send_sync";

fn format(workspace: &Workspace) -> Result<Verdict> {
    cargo(workspace)?.args(["fmt", "--all", "--check"]).show()?;
    Ok(Verdict::Passed)
}

fn clippy(workspace: &Workspace) -> Result<Verdict> {
    cargo(workspace)?
        .args(["clippy", "--workspace", "--all-targets"])
        // The test beside fastembed is code as well, and so is what servers have only if it is asked for.
        .args(["--features", FASTEMBED, "--features", SERVERS])
        .args(["--", "-D", "warnings"])
        .show()?;
    Ok(Verdict::Passed)
}

fn clippy_wasm(workspace: &Workspace) -> Result<Verdict> {
    let toolchain = WasmToolchain::require(workspace)?;
    // Debian's compiler comes without clippy: its own warnings are all there is to deny then.
    let has_clippy = cargo(workspace)?
        .args(["clippy", "--version"])
        .envs(toolchain.environment())
        .succeeds();
    let mut run: Run = cargo(workspace)?.envs(toolchain.environment());
    if has_clippy {
        run = run.args(["clippy"]);
    } else {
        report::word("this toolchain has no clippy: the compiler's own warnings are denied");
        run = run.args(["check"]).env("CARGO_BUILD_WARNINGS", "deny");
    }
    run = run.args(["--target", TARGET]);
    for name in WASM_CRATES {
        run = run.args(["--package", name]);
    }
    if has_clippy {
        run = run.args(["--", "-D", "warnings", "-A", NOT_IN_BROWSERS]);
    }
    run.show()?;
    Ok(Verdict::Passed)
}

fn doc(workspace: &Workspace) -> Result<Verdict> {
    docs::api(workspace)?;
    Ok(Verdict::Passed)
}

fn book(workspace: &Workspace) -> Result<Verdict> {
    // Its links and code are tested natively, without it.
    if which(workspace, "mdbook").is_none() {
        return Ok(Verdict::Skipped(
            "mdbook is not here (`cargo xtask setup mdbook`)".to_owned(),
        ));
    }
    docs::build(workspace, &docs::folder(workspace), false)?;
    Ok(Verdict::Passed)
}
