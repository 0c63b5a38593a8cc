//! What cargo says of our packages (<https://doc.rust-lang.org/cargo/commands/cargo-metadata.html>).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::cargo;
use crate::workspace::Workspace;

/// The folder of DataFusion's functions, which have a workspace of their own.
pub(crate) const DATAFUSION: &str = "bindings/datafusion";

/// The manifests of both workspaces, the root's first.
pub(crate) fn manifests(workspace: &Workspace) -> [PathBuf; 2] {
    ["", DATAFUSION].map(|folder| workspace.root.join(folder).join("Cargo.toml"))
}

/// The packages of the root's workspace.
pub(crate) fn packages(workspace: &Workspace) -> Result<Vec<Value>> {
    packages_of(workspace, &workspace.root.join("Cargo.toml"))
}

/// The packages of the workspace that a manifest begins.
pub(crate) fn packages_of(workspace: &Workspace, manifest: &Path) -> Result<Vec<Value>> {
    let text = cargo(workspace)?
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .args([OsStr::new("--manifest-path"), manifest.as_os_str()])
        .read()?;
    in_answer(&text)
}

fn in_answer(text: &str) -> Result<Vec<Value>> {
    let mut metadata: Value = serde_json::from_str(text).context("cargo metadata wrote no JSON")?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => anyhow::bail!("cargo metadata names no packages"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_what_cargo_says() {
        let packages = in_answer(r#"{"packages": [{"name": "a"}, {"name": "b"}]}"#).unwrap();
        assert_eq!(
            packages,
            [
                serde_json::json!({"name": "a"}),
                serde_json::json!({"name": "b"})
            ]
        );
        assert!(in_answer("{}").is_err() && in_answer("text").is_err());
    }
}
