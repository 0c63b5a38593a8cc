//! Command-line tools at pinned versions, built by cargo into the cache.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::Step;
use crate::process::{Run, cargo};
use crate::report;
use crate::workspace::Workspace;

/// A tool, the crate that holds it, and the version that this project was tested with.
pub(super) struct Tool {
    package: &'static str,
    program: &'static str,
    version: &'static str,
    /// What else cargo is told: which parts of it are wanted.
    parts: &'static [&'static str],
    /// How far it is optimised. Most run for seconds, so that it is their compiling that is waited for.
    level: &'static str,
}

/// Must be the version of the `wasm-bindgen` crate: the two speak a private format.
const WASM_BINDGEN: Tool = Tool {
    package: "wasm-bindgen-cli",
    program: "wasm-bindgen",
    version: "0.2.130",
    parts: &[],
    // It reads modules of many megabytes.
    level: "1",
};
const MACHETE: Tool = Tool {
    package: "cargo-machete",
    program: "cargo-machete",
    version: "0.9.2",
    parts: &[],
    level: "0",
};
const DENY: Tool = Tool {
    package: "cargo-deny",
    program: "cargo-deny",
    version: "0.20.2",
    parts: &[],
    level: "0",
};
/// Without what serves a book and watches its files, which is half of what it compiles.
const MDBOOK: Tool = Tool {
    package: "mdbook",
    program: "mdbook",
    version: "0.5.4",
    parts: &["--no-default-features", "--features", "search"],
    level: "0",
};

pub(super) const STEPS: [Step; 4] = [
    Step {
        name: "wasm-bindgen",
        what: "wasm-bindgen-cli 0.2.130: JavaScript around the wasm module, and its test runner",
        done: |workspace| WASM_BINDGEN.done(workspace),
        make: |workspace| WASM_BINDGEN.make(workspace),
        advice: "`cargo install wasm-bindgen-cli --version 0.2.130`, and put it on PATH",
        optional: false,
    },
    Step {
        name: "cargo-machete",
        what: "cargo-machete 0.9.2: finds dependencies that nothing uses",
        done: |workspace| MACHETE.done(workspace),
        make: |workspace| MACHETE.make(workspace),
        advice: "`cargo install cargo-machete --version 0.9.2`",
        optional: false,
    },
    Step {
        name: "cargo-deny",
        what: "cargo-deny 0.20.2: checks licences, sources and duplicates of dependencies",
        done: |workspace| DENY.done(workspace),
        make: |workspace| DENY.make(workspace),
        advice: "`cargo install cargo-deny --version 0.20.2`",
        optional: false,
    },
    Step {
        name: "mdbook",
        what: "mdbook 0.5.4: makes pages of the book under docs",
        done: |workspace| MDBOOK.done(workspace),
        make: |workspace| MDBOOK.make(workspace),
        advice: "`cargo install mdbook --version 0.5.4`",
        optional: true,
    },
];

impl Tool {
    /// Whether that version is in the cache or on `PATH`.
    fn done(&self, workspace: &Workspace) -> Result<Option<String>> {
        let answer = Run::new(workspace, self.program)?
            .args(["--version"])
            .read();
        Ok(answer
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|text| says(text, self.version)))
    }

    fn make(&self, workspace: &Workspace) -> Result<String> {
        let target = target(workspace);
        // The lock file is what the tool's authors tested. Where a registry lacks one of the
        // versions it names, the newest fitting ones have to do.
        if let Err(error) = self.install(workspace, &target, true) {
            report::word(&format!(
                "not with its own lock file ({error:#}); taking versions that fit"
            ));
            self.install(workspace, &target, false)?;
        }
        match self.done(workspace)? {
            Some(word) => Ok(word),
            None => bail!(
                "another {} stands in front of {} on PATH, or it does not start",
                self.program,
                workspace.tools().join("bin").display()
            ),
        }
    }

    fn install(&self, workspace: &Workspace, target: &Path, locked: bool) -> Result<()> {
        let run = cargo(workspace)?;
        let run = if locked { run.attempt() } else { run };
        run.args(["install", self.package, "--version", self.version])
            .args(["--force", "--root"])
            .args([workspace.tools().as_path()])
            .args(locked.then_some("--locked"))
            .args(self.parts)
            .env("CARGO_TARGET_DIR", target)
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", self.level)
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .logged(workspace, "tools")
    }
}

/// Where the tools are built, apart from the project's own target folder.
pub(super) fn target(workspace: &Workspace) -> PathBuf {
    workspace.cache.join("tools-target")
}

/// Whether `tool --version` names exactly that version, with or without the tool's name before
/// it, a `v` in front and a commit after it.
fn says(answer: &str, version: &str) -> bool {
    answer
        .split_whitespace()
        .any(|word| word.strip_prefix('v').unwrap_or(word) == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_whole() {
        assert!(says("wasm-bindgen 0.2.130", "0.2.130"));
        assert!(says("wasm-bindgen 0.2.130 (abc123)", "0.2.130"));
        assert!(says("0.9.2", "0.9.2"));
        assert!(says("mdbook v0.5.4", "0.5.4"));
        assert!(!says("wasm-bindgen 0.2.13", "0.2.130"));
        assert!(!says("wasm-bindgen 0.2.1301", "0.2.130"));
    }

    #[test]
    fn the_tool_and_the_crate_have_one_version() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
        let text = std::fs::read_to_string(manifest).unwrap();
        let pinned = format!("wasm-bindgen = \"={}\"", WASM_BINDGEN.version);
        assert!(
            text.contains(&pinned),
            "the workspace does not pin {pinned}"
        );
    }

    #[test]
    fn what_is_announced_names_the_pinned_versions() {
        let tools = [WASM_BINDGEN, MACHETE, DENY, MDBOOK];
        assert_eq!(tools.len(), STEPS.len());
        for (step, tool) in STEPS.iter().zip(tools) {
            assert!(step.what.contains(tool.version) && step.advice.contains(tool.version));
        }
    }
}
