//! Python environments inside the cache, with packages by version.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::wheel;
use crate::process::Run;
use crate::workspace::Workspace;

/// An environment and its packages.
pub(super) struct Venv {
    /// The name of its log.
    pub(super) name: &'static str,
    /// Its folder.
    pub(super) folder: fn(&Workspace) -> PathBuf,
    /// The packages, as `name==version`.
    pub(super) packages: &'static [&'static str],
}

impl Venv {
    /// The packages, if they are there, these ones.
    pub(super) fn done(&self, workspace: &Workspace) -> Option<String> {
        let pins = fs::read_to_string(self.pins(workspace)).unwrap_or_default();
        (pins == self.packages.join("\n")).then(|| self.packages.join(", "))
    }

    /// Makes it anew.
    pub(super) fn make(&self, workspace: &Workspace) -> Result<String> {
        let folder = (self.folder)(workspace);
        Run::new(workspace, wheel::python(workspace)?)?
            .args(["-m", "venv", "--clear"])
            .args([&folder])
            .logged(workspace, self.name)?;
        Run::new(workspace, Workspace::interpreter(&folder))?
            .args(["-m", "pip", "install", "--disable-pip-version-check"])
            .args(self.packages)
            .logged(workspace, self.name)?;
        let pins = self.pins(workspace);
        fs::write(&pins, self.packages.join("\n"))
            .with_context(|| format!("cannot write {}", pins.display()))?;
        let packages = self.packages.join(", ");
        Ok(format!("{} has {packages}", folder.display()))
    }

    /// What is written last.
    fn pins(&self, workspace: &Workspace) -> PathBuf {
        (self.folder)(workspace).join("pins.txt")
    }
}
