//! The tests that run inside a real browser.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::changed::Broken;
use super::{Check, Verdict};
use crate::process::{Run, cargo};
use crate::report;
use crate::serve::{self, Serving, TEST_PORT};
use crate::setup::{self, Browser};
use crate::wasm::WasmToolchain;
use crate::workspace::Workspace;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "browser",
        what: "the portable engine in headless Chromium, against the same reference vectors",
        concerned: Broken::in_code_of_pages,
        needs: &["model", "wasm32", "wasm-bindgen", "wasm-pack", "browser"],
        run: chromium,
    },
    Check {
        name: "firefox",
        what: "the same in headless Firefox, which compiles wasm with another compiler",
        concerned: Broken::in_code_of_pages,
        needs: &["model", "wasm32", "wasm-bindgen", "wasm-pack", "firefox"],
        run: firefox,
    },
];

fn chromium(workspace: &Workspace) -> Result<Verdict> {
    let browser = Browser::find(workspace)?;
    browser.check(workspace)?;
    let capabilities = chromium_capabilities(&browser, runs_as_root(workspace));
    run(
        workspace,
        &["--chrome", "--chromedriver"],
        &browser,
        &capabilities,
    )
}

fn firefox(workspace: &Workspace) -> Result<Verdict> {
    let browser = setup::find_firefox(workspace)?;
    let capabilities = firefox_capabilities(&browser);
    run(
        workspace,
        &["--firefox", "--geckodriver"],
        &browser,
        &capabilities,
    )
}

/// Runs every package's browser tests. `which` says which browser it is, and ends with the
/// option that takes the driver.
fn run(
    workspace: &Workspace,
    which: &[&str],
    browser: &Browser,
    capabilities: &Value,
) -> Result<Verdict> {
    let toolchain = WasmToolchain::require(workspace)?;
    let file = workspace.cache.join("webdriver.json");
    std::fs::write(&file, capabilities.to_string())
        .with_context(|| format!("cannot write {}", file.display()))?;

    let folders = folders_with_browser_tests(workspace)?;
    if folders.is_empty() {
        bail!("no package depends on wasm-bindgen-test: nothing would be tested in a browser");
    }
    // Wasm has no files: the tests fetch the model from here.
    let serving = Serving::start(TEST_PORT, serve::mounts(workspace))?;
    report::word(&format!("serving the model at {}/models/", serving.url()));
    let mut failed = Vec::new();
    for folder in folders {
        let run = Run::new(workspace, "wasm-pack")?
            .args(["test", "--headless"])
            .args(which)
            .args([&browser.driver])
            .args(["--mode", "no-install"])
            .args([&folder])
            .envs(toolchain.environment())
            .env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", &file)
            // Seconds for one test binary: compiling a 12 MB module on a small, busy machine and loading
            // a 90 MB model take their time, and the default of 20 s is about the runner, not us.
            .env("WASM_BINDGEN_TEST_TIMEOUT", "1800")
            // The runner's own stack says nothing of a failed test, and stands after what does.
            .env("RUST_BACKTRACE", "0");
        if let Err(error) = run.show() {
            report::word(&format!("{error:#}"));
            failed.push(folder.display().to_string());
        }
    }
    if !failed.is_empty() {
        bail!("browser tests failed in {}", failed.join(", "));
    }
    Ok(Verdict::Passed)
}

/// What chromedriver starts the browser with.
fn chromium_capabilities(browser: &Browser, root: bool) -> Value {
    let mut args = vec![
        "--headless=new",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        // WebGPU on a software adapter, where there is no GPU.
        "--enable-unsafe-webgpu",
        // Containers often give /dev/shm no more than 64 MB, which large modules exceed.
        "--disable-dev-shm-usage",
    ];
    if root {
        // The sandbox does not work for root, which build machines often are. The pages are ours.
        args.push("--no-sandbox");
    }
    json!({ "goog:chromeOptions": { "binary": browser.program, "args": args } })
}

/// What geckodriver starts the browser with: it talks to nobody but the tests.
fn firefox_capabilities(browser: &Browser) -> Value {
    json!({ "moz:firefoxOptions": {
        "binary": browser.program,
        "args": ["-headless"],
        "prefs": {
            "app.update.auto": false,
            "datareporting.policy.dataSubmissionEnabled": false,
            "network.captive-portal-service.enabled": false,
            "network.connectivity-service.enabled": false,
            "toolkit.telemetry.enabled": false,
        },
    } })
}

fn runs_as_root(workspace: &Workspace) -> bool {
    Run::new(workspace, "id")
        .and_then(|run| run.args(["-u"]).read())
        .is_ok_and(|id| id.trim() == "0")
}

/// The folders of our packages that have tests for the browser.
fn folders_with_browser_tests(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let text = cargo(workspace)?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .read()?;
    folders_in(&serde_json::from_str(&text).context("cargo metadata wrote no JSON")?)
}

fn folders_in(metadata: &Value) -> Result<Vec<PathBuf>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    let mut folders = Vec::new();
    for package in packages {
        let depends = package["dependencies"]
            .as_array()
            .is_some_and(|all| all.iter().any(|d| d["name"] == "wasm-bindgen-test"));
        if let (true, Some(manifest)) = (depends, package["manifest_path"].as_str()) {
            folders.extend(PathBuf::from(manifest).parent().map(PathBuf::from));
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_with_browser_tests_are_found_by_their_dependency() {
        let metadata = json!({"packages": [
            {"manifest_path": "/a/Cargo.toml", "dependencies": [{"name": "wasm-bindgen-test"}]},
            {"manifest_path": "/b/Cargo.toml", "dependencies": [{"name": "wasm-bindgen"}]},
        ]});
        assert_eq!(folders_in(&metadata).unwrap(), [PathBuf::from("/a")]);
        assert!(folders_in(&json!({})).is_err());
    }

    #[test]
    fn the_sandbox_goes_only_for_root() {
        let browser = Browser {
            program: "/chrome".into(),
            driver: "/driver".into(),
        };
        let text = |root| chromium_capabilities(&browser, root).to_string();
        assert!(text(true).contains("--no-sandbox") && !text(false).contains("--no-sandbox"));
        assert!(text(false).contains("/chrome") && text(false).contains("--headless=new"));
    }
}
