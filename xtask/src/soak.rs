//! `cargo xtask soak`: random work for so long, natively and in a page at once (`tests/soak`, `bindings/js/tests/soak.test.mjs`).

use std::path::Path;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use clap::ValueEnum;

use crate::process::Run;
use crate::setup::Browser;
use crate::wasm::WasmToolchain;
use crate::workspace::Workspace;
use crate::{build, demo, report};

/// Where the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Where {
    /// On this machine's engines.
    Native,
    /// In headless Chromium.
    Page,
}

/// Runs what there is to run; `only` one of the two where it is named.
pub(crate) fn run(
    workspace: &Workspace,
    minutes: u64,
    seed: Option<u64>,
    only: Option<Where>,
) -> Result<()> {
    // JavaScript's numbers are whole up to 2^53.
    let seed = seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(17, |now| now.as_secs())
    });
    report::word(&format!("seed {seed}"));
    let page = match only {
        Some(Where::Native) => None,
        Some(Where::Page) => Some(Browser::find(workspace)?),
        None => match WasmToolchain::require(workspace).and(Browser::find(workspace)) {
            Ok(browser) => Some(browser),
            Err(error) => {
                report::word(&format!("the page is left out: {error:#}"));
                None
            }
        },
    };
    // Before the clock starts, and one after the other: both take all cores.
    if page.is_some() {
        build::npm(workspace)?;
    }
    let program = match only {
        Some(Where::Page) => None,
        _ => Some(demo::built(workspace, "isovec-soak")?),
    };
    thread::scope(|scope| {
        let page =
            page.map(|browser| scope.spawn(move || self::page(workspace, &browser, minutes, seed)));
        let native = match program {
            Some(program) => native(workspace, &program, minutes, seed),
            None => Ok(()),
        };
        let page = page.map_or(Ok(()), |page| {
            page.join()
                .unwrap_or_else(|_| Err(anyhow!("the page's half panicked")))
        });
        native.and(page)
    })
}

fn native(workspace: &Workspace, program: &Path, minutes: u64, seed: u64) -> Result<()> {
    let mut run = Run::new(workspace, program)?.args([
        "--minutes",
        &minutes.to_string(),
        "--seed",
        &seed.to_string(),
    ]);
    if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
        // Mesa's Vulkan says for every device that it is missing, and has no use for it.
        run = run.env("XDG_RUNTIME_DIR", std::env::temp_dir());
    }
    run.show()
}

fn page(workspace: &Workspace, browser: &Browser, minutes: u64, seed: u64) -> Result<()> {
    Run::new(workspace, "node")?
        .args(["--test", "tests/soak.test.mjs"])
        .env("CHROME", &browser.program)
        .env("ISOVEC_SOAK_MINUTES", minutes.to_string())
        .env("ISOVEC_SOAK_SEED", seed.to_string())
        .within(&workspace.js())
        .show()
}
