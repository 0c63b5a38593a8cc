//! The tests that run inside a real browser.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::changed::Broken;
use super::{Check, Verdict};
use crate::metadata::packages;
use crate::process::{Run, cargo};
use crate::report;
use crate::serve::{self, Serving, TEST_PORT};
use crate::setup::{self, Browser};
use crate::wasm::{TARGET, WasmToolchain};
use crate::workspace::{Workspace, which};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "browser",
        what: "the portable engine in headless Chromium, against the same reference vectors",
        concerned: Broken::in_code_of_pages,
        own: None,
        needs: &["model", "wasm32", "wasm-bindgen", "browser"],
        run: chromium,
    },
    Check {
        name: "firefox",
        what: "the same in headless Firefox, which compiles wasm with another compiler",
        concerned: Broken::in_code_of_pages,
        own: Some(|broken| broken.in_own_code_of("isovec-kernels")),
        needs: &["model", "wasm32", "wasm-bindgen", "firefox"],
        run: firefox,
    },
];

/// What marks a test for the browser.
const MARK: &str = "wasm_bindgen_test";

fn chromium(workspace: &Workspace) -> Result<Verdict> {
    let browser = Browser::find(workspace)?;
    browser.check(workspace)?;
    let capabilities = chromium_capabilities(&browser, runs_as_root(workspace));
    run(workspace, "CHROMEDRIVER", &browser, &capabilities)
}

fn firefox(workspace: &Workspace) -> Result<Verdict> {
    let browser = setup::find_firefox(workspace)?;
    let capabilities = firefox_capabilities(&browser);
    run(workspace, "GECKODRIVER", &browser, &capabilities)
}

/// Runs all browser tests by wasm-bindgen's runner, which takes the browser whose driver the variable `driver` names.
fn run(
    workspace: &Workspace,
    driver: &str,
    browser: &Browser,
    capabilities: &Value,
) -> Result<Verdict> {
    let toolchain = WasmToolchain::require(workspace)?;
    let file = workspace.cache.join("webdriver.json");
    fs::write(&file, capabilities.to_string())
        .with_context(|| format!("cannot write {}", file.display()))?;

    let runner = which(workspace, "wasm-bindgen-test-runner")
        .context("wasm-bindgen-test-runner is missing: run `cargo xtask setup wasm-bindgen`")?;
    let tests = browser_tests(&packages(workspace)?);
    if tests.is_empty() {
        bail!("no test names {MARK}: nothing would be tested in a browser");
    }
    // Wasm has no files: the tests fetch the model from here.
    let serving = Serving::start(TEST_PORT, serve::mounts(workspace))?;
    report::word(&format!("serving the model at {}/models/", serving.url()));
    let packages: BTreeSet<_> = tests.iter().map(|test| &test.package).collect();
    let names: BTreeSet<_> = tests.iter().map(|test| &test.name).collect();
    // All at once, because each package alone wants its dependencies with other features, and compiles them anew.
    cargo(workspace)?
        .args(["test", "--no-fail-fast", "--target", TARGET])
        .args(packages.into_iter().flat_map(|name| ["--package", name]))
        .args(names.into_iter().flat_map(|name| ["--test", name]))
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", &runner)
        .env(driver, &browser.driver)
        // Tests that name no place run in the page as well, and not in node.
        .env("WASM_BINDGEN_TEST_ONLY_WEB", "1")
        .envs(toolchain.environment())
        .env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", &file)
        // Seconds for one test binary: compiling a 12 MB module on a small, busy machine and loading
        // a 90 MB model take their time, and the default of 20 s is about the runner, not us.
        .env("WASM_BINDGEN_TEST_TIMEOUT", "1800")
        // The runner's own stack says nothing of a failed test, and stands after what does.
        .env("RUST_BACKTRACE", "0")
        .show()?;
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
    json!({
        "timeouts": timeouts(),
        "goog:chromeOptions": { "binary": browser.program, "args": args },
    })
}

/// What geckodriver starts the browser with: it talks to nobody but the tests.
fn firefox_capabilities(browser: &Browser) -> Value {
    json!({
        "timeouts": timeouts(),
        "moz:firefoxOptions": {
            "binary": browser.program,
            "args": ["-headless"],
            "prefs": {
                "app.update.auto": false,
                "datareporting.policy.dataSubmissionEnabled": false,
                "network.captive-portal-service.enabled": false,
                "network.connectivity-service.enabled": false,
                "toolkit.telemetry.enabled": false,
            },
        },
    })
}

/// How long a driver waits for the page, in milliseconds. The runner asks the page for its output all the time, and a page that
/// computes answers late: the default, 30 s, is too short for a model's run on a busy machine.
fn timeouts() -> Value {
    json!({ "script": 600_000, "pageLoad": 600_000 })
}

fn runs_as_root(workspace: &Workspace) -> bool {
    Run::new(workspace, "id")
        .and_then(|run| run.args(["-u"]).read())
        .is_ok_and(|id| id.trim() == "0")
}

/// A program of tests for the browser.
#[derive(Debug, PartialEq, Eq)]
struct BrowserTest {
    package: String,
    name: String,
}

/// The programs under `tests` that have tests for the browser: to compile the others for it would only take time.
fn browser_tests(packages: &[Value]) -> Vec<BrowserTest> {
    let mut found = Vec::new();
    for package in packages {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is_test = target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.contains(&"test".into()));
            let source = target["src_path"].as_str().map(Path::new);
            if !is_test || !source.is_some_and(marks) {
                continue;
            }
            if let (Some(package), Some(name)) = (package["name"].as_str(), target["name"].as_str())
            {
                found.push(BrowserTest {
                    package: package.to_owned(),
                    name: name.to_owned(),
                });
            }
        }
    }
    found
}

/// Whether a source, or a module that lies beside it, names what marks a test for the browser.
fn marks(source: &Path) -> bool {
    let text = fs::read_to_string(source).unwrap_or_default();
    let beside = source.parent().unwrap_or(source);
    let modules = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mod ")?.strip_suffix(';'));
    text.contains(MARK)
        || modules.into_iter().any(|name| {
            [format!("{name}.rs"), format!("{name}/mod.rs")]
                .iter()
                .any(|file| marks(&beside.join(file)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_for_the_browser_are_found_by_their_mark() {
        let found = browser_tests(&packages(&Workspace::find().unwrap()).unwrap());
        let has = |package: &str, name: &str| {
            found.contains(&BrowserTest {
                package: package.to_owned(),
                name: name.to_owned(),
            })
        };
        // One that names it, one whose module beside it does, and one of each kind that does not.
        assert!(has("isovec-web", "browser") && !has("isovec-web", "native"));
        assert!(has("isovec-pixels", "resize") && has("isovec-js", "browser"));
        assert!(!has("isovec-tokenize", "hostile") && !has("isovec", "whole"));
    }

    #[test]
    fn drivers_wait_for_a_page_that_computes() {
        let browser = Browser {
            program: "/browser".into(),
            driver: "/driver".into(),
        };
        for capabilities in [
            chromium_capabilities(&browser, false),
            firefox_capabilities(&browser),
        ] {
            assert!(capabilities["timeouts"]["script"].as_u64() > Some(30_000));
        }
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
