//! The parts that only a nightly toolchain has: Miri, and the source of the standard library.

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::Step;
use crate::process::Run;
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "miri",
    what: "Miri and the library's source, of a nightly toolchain: for `cargo xtask test miri sanitizers`",
    done,
    make,
    advice: "`rustup toolchain install nightly --component miri rust-src`; without it these checks say what they leave out",
    optional: true,
};

fn done(workspace: &Workspace) -> Result<Option<String>> {
    let Some(nightly) = Nightly::find(workspace)? else {
        return Ok(None);
    };
    Ok((nightly.has_miri(workspace)? && nightly.has_source(workspace)?).then_some(nightly.0))
}

fn make(workspace: &Workspace) -> Result<String> {
    let rustup = |words: &[&str]| {
        let run = Run::new(workspace, "rustup")?.args(words);
        run.attempt().logged(workspace, "rustup")
    };
    match Nightly::find(workspace)? {
        Some(Nightly(name)) => {
            rustup(&["component", "add", "--toolchain", &name, "miri", "rust-src"])?;
        }
        None => rustup(&[
            "toolchain",
            "install",
            "nightly",
            "--profile",
            "minimal",
            "--component",
            "miri",
            "rust-src",
        ])?,
    }
    match done(workspace)? {
        Some(name) => Ok(name),
        None => bail!("rustup says that it was installed, and it does not answer"),
    }
}

/// A nightly toolchain, by rustup's name for it.
pub(crate) struct Nightly(pub(crate) String);

impl Nightly {
    /// The first that rustup has.
    pub(crate) fn find(workspace: &Workspace) -> Result<Option<Self>> {
        let all = Run::new(workspace, "rustup")?
            .args(["toolchain", "list"])
            .read()
            .unwrap_or_default();
        Ok(first(&all).map(|name| Self(name.to_owned())))
    }

    /// `cargo` of this toolchain.
    pub(crate) fn cargo(&self, workspace: &Workspace) -> Result<Run> {
        // By the name and not by `+nightly`, which only rustup's own `cargo` understands.
        Ok(Run::new(workspace, "rustup")?.args(["run", &self.0, "cargo"]))
    }

    /// Whether Miri answers.
    pub(crate) fn has_miri(&self, workspace: &Workspace) -> Result<bool> {
        let run = self.cargo(workspace)?.args(["miri", "--version"]);
        Ok(run.succeeds())
    }

    /// Whether the standard library can be compiled.
    pub(crate) fn has_source(&self, workspace: &Workspace) -> Result<bool> {
        let sysroot = Run::new(workspace, "rustup")?
            .args(["run", &self.0, "rustc", "--print", "sysroot"])
            .read()?;
        let source = PathBuf::from(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
        Ok(source.is_file())
    }
}

/// The first nightly toolchain of rustup's list.
fn first(list: &str) -> Option<&str> {
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.into_iter().find(|name| name.starts_with("nightly"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nightly_toolchain_is_found_by_its_name() {
        let list = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                    nightly-2026-05-20-x86_64-unknown-linux-gnu\n";
        assert_eq!(
            first(list),
            Some("nightly-2026-05-20-x86_64-unknown-linux-gnu")
        );
        assert_eq!(first("1.95.0-x86_64-unknown-linux-gnu\n"), None);
        assert_eq!(first(""), None);
    }
}
