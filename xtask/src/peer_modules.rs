//! The wasm modules that `benches/wasm` measures beside the npm package: the most that the machine
//! does without memory, a profile of a run, and rten.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::cargo;
use crate::report;
use crate::wasm::{TARGET, WasmToolchain};
use crate::workspace::Workspace;

const SIMD: &str = "+simd128";
const RELAXED_SIMD: &str = "+simd128,+relaxed-simd";

/// Builds them; gives the variables in which the bench finds their paths.
pub(crate) fn build(workspace: &Workspace, benches: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let root = workspace.root.join("Cargo.toml");
    let ceiling = ["--package", "isovec-kernels", "--example", "ceiling"];
    let product = "examples/ceiling.wasm";
    let mut modules = Vec::new();
    for (variable, features) in [
        ("ISOVEC_CEILING", SIMD),
        ("ISOVEC_RELAXED_CEILING", RELAXED_SIMD),
    ] {
        let path = module(workspace, &root, &ceiling, features, product)?;
        modules.push((variable, kept(workspace, &path, variable)?));
    }
    let profile = module(
        workspace,
        &root,
        &["--package", "isovec-encoder", "--example", "wasm_profile"],
        RELAXED_SIMD,
        "examples/wasm_profile.wasm",
    )?;
    modules.push(("ISOVEC_PROFILE", profile));
    // A peer that this machine cannot have does not stop the others.
    let rten = benches.join("wasm/rten/Cargo.toml");
    match module(
        workspace,
        &rten,
        &["--locked"],
        RELAXED_SIMD,
        "isovec_bench_rten.wasm",
    ) {
        Ok(path) => modules.push(("ISOVEC_RTEN", path)),
        Err(error) => report::word(&format!("rten is left out: {error:#}")),
    }
    Ok(modules)
}

fn module(
    workspace: &Workspace,
    manifest: &Path,
    args: &[&str],
    features: &str,
    product: &str,
) -> Result<PathBuf> {
    cargo(workspace)?
        .args(["build", "--release", "--target", TARGET, "--manifest-path"])
        .args([manifest])
        .args(args)
        .env("RUSTFLAGS", format!("-C target-feature={features}"))
        .envs(WasmToolchain::require(workspace)?.environment())
        .show()?;
    Ok(workspace.target.join(TARGET).join("release").join(product))
}

/// A copy that the next build, which has the same name, leaves alone.
fn kept(workspace: &Workspace, module: &Path, name: &str) -> Result<PathBuf> {
    let copy = workspace.target.join(TARGET).join(format!("{name}.wasm"));
    fs::copy(module, &copy)
        .with_context(|| format!("cannot copy {} to {}", module.display(), copy.display()))?;
    Ok(copy)
}
