//! Building what is shipped: the npm package and the page.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{Run, cargo, npm as run_npm};
use crate::wasm::WasmToolchain;
use crate::workspace::{MODEL, Workspace};
use crate::{demo, notices, report};

/// The builds of the wasm module, each in a folder of the package's `pkg` (bindings/js/scripts/build.mjs).
pub(crate) const BUILDS: [&str; 4] = ["simd128", "relaxed", "threads", "tract"];

/// The name of the file with the licences of what is inside the wasm module.
pub(crate) const NOTICES: &str = "THIRD-PARTY-NOTICES";

/// The folder that `npm pack` packs.
pub(crate) fn package_folder(workspace: &Workspace) -> PathBuf {
    workspace.js()
}

/// The folder of the built page.
pub(crate) fn page_folder(workspace: &Workspace) -> PathBuf {
    workspace.root.join("www").join("dist")
}

/// Builds the npm package: wasm, TypeScript, notices.
pub(crate) fn npm(workspace: &Workspace) -> Result<()> {
    let toolchain = WasmToolchain::require(workspace)?;
    run_npm(workspace)?
        .args(["run", "build"])
        .envs(toolchain.environment())
        .within(&workspace.js())
        .show()?;
    let out = package_folder(workspace).join(NOTICES);
    notices::write(workspace, &notices::MODULE, &out)
}

/// Builds the package of the add-on for node, for this machine: the add-on, notices. Gives its folder.
pub(crate) fn node(workspace: &Workspace, profile: &str) -> Result<PathBuf> {
    let sources = workspace.root.join("bindings").join("node");
    let text = Run::new(workspace, "node")?
        .args(["scripts/build.mjs", "--profile", profile])
        .within(&sources)
        .read()?;
    let folder = text.lines().last().context("the script names no folder")?;
    let folder = PathBuf::from(folder);
    notices::write(workspace, &notices::ADDON, &folder.join(NOTICES))?;
    Ok(folder)
}

/// Writes the TypeScript types of the configuration.
pub(crate) fn types(workspace: &Workspace) -> Result<()> {
    // The whole workspace, for the features that the checks build with.
    cargo(workspace)?
        .args(["test", "--workspace", "--test", "typescript"])
        .env("ISOVEC_WRITE_TYPES", "1")
        .show()
}

/// Builds the page on the package as it was built last, with what native isovec makes for it: the index of its sample, and
/// the model in its smallest form.
pub(crate) fn page(workspace: &Workspace) -> Result<()> {
    let program = demo::program(workspace)?;
    let folder = workspace.target.join("page");
    let (index, model) = (folder.join("sample.safetensors"), folder.join("model"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    report::word("indexing the page's sample, and exporting its model");
    let sample = workspace.root.join("www").join("sample");
    // The index names the model as the program was given it, and whoever opens the page may read that.
    let models = workspace.cache.join("models");
    let source = ["--model", &format!("./{MODEL}"), "--engine", "portable"];
    Run::new(workspace, &program)?
        .args(["embed", "--file"])
        .args([sample.join("passages.txt")])
        .args(["--out"])
        .args([&index])
        .args(source)
        .within(&models)
        .read()?;
    Run::new(workspace, &program)?
        .args(["export", "--dtype", "int8", "--out"])
        .args([&model])
        .args(source)
        .within(&models)
        .read()?;
    run_npm(workspace)?
        .args(["run", "build:page"])
        .env("ISOVEC_PAGE_INDEX", index)
        .env("ISOVEC_PAGE_MODEL", model)
        .within(&workspace.js())
        .show()
}

/// One file of the npm package.
pub(crate) struct Packed {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

/// What `npm pack` would ship; fails when a build of the module or the notices are missing.
pub(crate) fn pack(workspace: &Workspace) -> Result<Vec<Packed>> {
    let folder = package_folder(workspace);
    let text = run_npm(workspace)?
        .args(["pack", "--dry-run", "--json", "--ignore-scripts"])
        .within(&folder)
        .read()?;
    let answer: Value = serde_json::from_str(&text).context("npm pack wrote no JSON")?;
    let names = packed_names(&answer)?;
    let parts = ["isovec_js.js", "isovec_js_bg.wasm"];
    let builds = BUILDS.iter();
    let builds = builds.flat_map(|build| parts.map(|part| format!("pkg/{build}/{part}")));
    let others = [
        // The types of every build are these.
        "pkg/simd128/isovec_js.d.ts",
        NOTICES,
        "dist/index.js",
        "dist/index.d.ts",
        "dist/advisor.js",
        "dist/inline.js",
        "dist/thread.js",
        "dist/worker.js",
        "pkg/advisor/isovec_js_advisor.js",
        "pkg/advisor/isovec_js_advisor_bg.wasm",
        "pkg/image/isovec_js_image.js",
        "pkg/image/isovec_js_image_bg.wasm",
        "README.md",
        "package.json",
    ];
    for wanted in builds.chain(others.map(str::to_owned)) {
        if !names.contains(&wanted) {
            bail!(
                "the npm package lacks {wanted}: it holds {}",
                names.join(", ")
            );
        }
    }
    Ok(names
        .into_iter()
        .map(|name| Packed {
            path: folder.join(&name),
            name,
        })
        .collect())
}

/// The files in npm's answer: a list with one package, or (newer versions) an object of packages.
fn packed_names(answer: &Value) -> Result<Vec<String>> {
    let package = match answer {
        Value::Array(all) => all.first(),
        Value::Object(all) if all.contains_key("files") => Some(answer),
        Value::Object(all) => all.values().next(),
        _ => None,
    };
    let files = package
        .and_then(|package| package["files"].as_array())
        .context("npm pack names no files")?;
    Ok(files
        .iter()
        .filter_map(|file| file["path"].as_str())
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_files_are_read_from_every_form_of_npms_answer() {
        let package = json!({"name": "isovec", "files": [{"path": "a.js"}, {"path": "b.wasm"}]});
        for answer in [
            json!([package]),
            package.clone(),
            json!({ "isovec": package }),
        ] {
            assert_eq!(packed_names(&answer).unwrap(), ["a.js", "b.wasm"]);
        }
        assert!(packed_names(&json!([])).is_err());
    }
}
