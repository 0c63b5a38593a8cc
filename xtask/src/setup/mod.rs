//! Installs missing tools and data. Every step says what it does, is skipped if it is done, and says what to do if it
//! fails. The other steps still run, so that one run names all failures.

mod apt;
pub(crate) mod arm;
mod browser;
mod corpus;
mod firefox;
mod gpu;
mod model;
mod nightly;
mod node;
mod nodes;
mod ocr;
mod onnxruntime;
mod peers;
mod python;
mod tools;
mod venv;
mod wasm32;
mod wheel;

use anyhow::{Result, bail};

use crate::report;
use crate::workspace::Workspace;

pub(crate) use browser::Browser;
pub(crate) use firefox::find as find_firefox;
pub(crate) use gpu::has_gpu;
pub(crate) use nightly::Nightly;
pub(crate) use node::{everywhere, install_packages};
pub(crate) use nodes::has_node_tests;
pub(crate) use ocr::has_ocr;

/// One thing to bring.
#[derive(Clone, Copy)]
struct Step {
    name: &'static str,
    what: &'static str,
    /// Says in a word that it is done, or nothing.
    done: fn(&Workspace) -> Result<Option<String>>,
    /// Does it, and says in a word what was done.
    make: fn(&Workspace) -> Result<String>,
    /// What to do by hand where this fails.
    advice: &'static str,
    /// Whether the project works without it.
    optional: bool,
}

const STEPS: &[Step] = &[
    onnxruntime::STEP,
    model::STEP,
    wasm32::STEP,
    tools::STEPS[0],
    browser::STEP,
    firefox::STEP,
    gpu::STEP,
    arm::STEP,
    nodes::STEP,
    ocr::STEP,
    node::STEP,
    node::EVERYWHERE,
    node::CLIENTS,
    tools::STEPS[1],
    tools::STEPS[2],
    tools::STEPS[3],
    corpus::STEP,
    peers::STEP,
    python::STEP,
    nightly::STEP,
];

/// What the demo needs, and nothing that only tests need.
pub(crate) const DEMO: &[&str] = &["onnxruntime", "model"];
/// What building the npm package needs.
pub(crate) const NPM: &[&str] = &["wasm32", "wasm-bindgen", "npm"];
/// What running the npm package in a browser needs, on the real model.
pub(crate) const PAGE: &[&str] = &["model", "wasm32", "wasm-bindgen", "browser", "npm"];
/// What its tests need: the networks that read text as well.
pub(crate) const NPM_TESTS: &[&str] = &["model", "ocr", "wasm32", "wasm-bindgen", "browser", "npm"];
/// What running it natively in node needs, and in Bun, which is among what tests it everywhere.
pub(crate) const NODE: &[&str] = &[
    "onnxruntime",
    "model",
    "ocr",
    "wasm32",
    "wasm-bindgen",
    "browser",
    "npm",
    "everywhere",
];
/// What the page's tests need: Firefox as well, and what drives it.
pub(crate) const PAGE_TESTS: &[&str] = &[
    "model",
    "wasm32",
    "wasm-bindgen",
    "browser",
    "firefox",
    "npm",
    "everywhere",
];
/// What measuring the npm package takes, on real texts.
pub(crate) const WASM: &[&str] = &[
    "model",
    "wasm32",
    "wasm-bindgen",
    "browser",
    "npm",
    "corpus",
];
/// The same, beside transformers.js, whose model Python makes.
pub(crate) const TRANSFORMERS: &[&str] = &[
    "model",
    "wasm32",
    "wasm-bindgen",
    "browser",
    "npm",
    "corpus",
    "peers",
    "firefox",
];
/// What the packed npm package needs to be tested where users put it.
pub(crate) const EVERYWHERE: &[&str] = &[
    "wasm32",
    "wasm-bindgen",
    "browser",
    "firefox",
    "npm",
    "everywhere",
];
/// What the book's pages are made with.
pub(crate) const BOOK: &[&str] = &["mdbook"];
/// What fuzzing takes: targets are compared with ONNX Runtime as well.
pub(crate) const FUZZ: &[&str] = &["onnxruntime"];
/// What comparing with other programs needs, natively.
pub(crate) const PEERS: &[&str] = &["onnxruntime", "model", "corpus", "peers"];

/// The names and what they do.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:14} {}", step.name, step.what);
    }
}

/// The steps a user named, in the order in which they run; all of them when he named none.
pub(crate) fn choose(names: &[String]) -> Result<Vec<&'static str>> {
    for name in names {
        if !STEPS.iter().any(|step| step.name == name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            bail!(
                "there is no step {name:?}; the steps are {}",
                known.join(", ")
            );
        }
    }
    Ok(STEPS
        .iter()
        .map(|step| step.name)
        .filter(|name| names.is_empty() || names.iter().any(|n| n == name))
        .collect())
}

/// Runs the named steps.
pub(crate) fn run(workspace: &Workspace, names: &[&str]) -> Result<()> {
    let steps: Vec<&Step> = STEPS
        .iter()
        .filter(|step| names.contains(&step.name))
        .collect();
    let mut failed = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        report::step(at + 1, steps.len(), step.name, step.what);
        let ended = match (step.done)(workspace) {
            Ok(Some(word)) => {
                report::word(&format!("done already: {word}"));
                continue;
            }
            Ok(None) => (step.make)(workspace),
            Err(error) => Err(error),
        };
        match ended {
            Ok(word) => report::word(&word),
            Err(error) => {
                report::word(&format!(
                    "{}: {error:#}",
                    if step.optional { "left out" } else { "failed" }
                ));
                report::word(&format!("what to do: {}", step.advice));
                if !step.optional {
                    failed.push(step.name);
                }
            }
        }
    }
    // Gigabytes that nobody needs again. They stay until here: the tools share dependencies.
    let _ = std::fs::remove_dir_all(tools::target(workspace));
    println!();
    if !failed.is_empty() {
        bail!(
            "set-up is not complete: {}; what to do stands above, then run `cargo xtask setup` again",
            failed.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_steps_in_running_order() {
        let all = choose(&[]).unwrap();
        assert_eq!(all.len(), STEPS.len());
        let some = choose(&["model".into(), "onnxruntime".into()]).unwrap();
        assert_eq!(some, ["onnxruntime", "model"]);
        let error = choose(&["modle".into()]).unwrap_err().to_string();
        assert!(
            error.contains("modle") && error.contains("onnxruntime"),
            "{error}"
        );
    }

    #[test]
    fn every_name_is_used_once_and_the_lists_name_real_steps() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(
                STEPS[at + 1..].iter().all(|other| other.name != step.name),
                "{}",
                step.name
            );
        }
        let lists = [
            DEMO,
            NPM,
            PAGE,
            NODE,
            PAGE_TESTS,
            EVERYWHERE,
            WASM,
            TRANSFORMERS,
            PEERS,
            BOOK,
            FUZZ,
        ];
        for name in lists.into_iter().flatten() {
            assert!(STEPS.iter().any(|step| step.name == *name), "{name}");
        }
    }
}
