//! Which toolchain compiles for wasm32, and with which linker.
//!
//! Two routes lead to the wasm32 standard library: `rustup target add`, and, where rustup's
//! server cannot be reached, Debian's compiler with a standard library built from its source.
//! Everything that builds for wasm asks here which of them was taken.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::Run;
use crate::workspace::Workspace;

/// The target that browsers run.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// The name under which set-up links Debian's compiler into rustup.
pub(crate) const DEBIAN_TOOLCHAIN: &str = "wasm";

/// A toolchain that has proven that it compiles for wasm32.
pub(crate) struct WasmToolchain {
    /// A rustup toolchain's name; `None` is the one in use.
    name: Option<&'static str>,
    /// A linker, where the toolchain brings none.
    linker: Option<PathBuf>,
}

impl WasmToolchain {
    /// Finds the first route that compiles a small program, or nothing.
    pub(crate) fn find(workspace: &Workspace) -> Result<Option<Self>> {
        for name in [None, Some(DEBIAN_TOOLCHAIN)] {
            if compiles(workspace, name)? {
                let linker = if name.is_some() {
                    Some(borrowed_linker(workspace)?)
                } else {
                    None
                };
                return Ok(Some(Self { name, linker }));
            }
        }
        Ok(None)
    }

    /// The toolchain, or what to do without one.
    pub(crate) fn require(workspace: &Workspace) -> Result<Self> {
        match Self::find(workspace)? {
            Some(found) => Ok(found),
            None => bail!("no toolchain compiles for {TARGET}: run `cargo xtask setup wasm32`"),
        }
    }

    /// What cargo, wasm-pack and npm scripts must be told to build for wasm32.
    pub(crate) fn environment(&self) -> Vec<(String, OsString)> {
        let mut all = Vec::new();
        if let Some(name) = self.name {
            all.push(("RUSTUP_TOOLCHAIN".to_owned(), OsString::from(name)));
        }
        if let Some(linker) = &self.linker {
            all.push((
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER".to_owned(),
                linker.clone().into_os_string(),
            ));
        }
        all
    }

    /// The route in words.
    pub(crate) fn describe(&self) -> String {
        match self.name {
            None => "the toolchain in use has it".to_owned(),
            Some(name) => format!("the toolchain `{name}` (Debian's compiler) has it"),
        }
    }
}

/// Whether a toolchain compiles for wasm32: the only proof that a standard library is there and
/// was built by this very compiler, which a look at files cannot give.
fn compiles(workspace: &Workspace, name: Option<&str>) -> Result<bool> {
    let folder = workspace.cache.join("probe");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let source = folder.join("probe.rs");
    std::fs::write(
        &source,
        "pub fn probe(n: usize) -> String { \"a\".repeat(n) }\n",
    )
    .with_context(|| format!("cannot write {}", source.display()))?;
    let mut run = Run::new(workspace, "rustc")?;
    if let Some(name) = name {
        run = run.env("RUSTUP_TOOLCHAIN", name);
    }
    Ok(run
        .args([
            "--crate-type=lib",
            "--edition=2024",
            "--emit=metadata",
            "--target",
            TARGET,
            "--out-dir",
        ])
        .args([folder.as_path(), source.as_path()])
        .succeeds())
}

/// Debian's compiler brings no linker for wasm: take the one of the toolchain in use.
fn borrowed_linker(workspace: &Workspace) -> Result<PathBuf> {
    let sysroot = Run::new(workspace, "rustc")?
        .args(["--print", "sysroot"])
        .read()?;
    let version = Run::new(workspace, "rustc")?.args(["-vV"]).read()?;
    let host = host(&version).context("`rustc -vV` does not name its host")?;
    let linker = Path::new(sysroot.trim())
        .join("lib/rustlib")
        .join(host)
        .join("bin")
        .join(if std::env::consts::OS == "windows" {
            "rust-lld.exe"
        } else {
            "rust-lld"
        });
    if !linker.is_file() {
        bail!(
            "{} is missing: the toolchain in use has to be one that rustup installed",
            linker.display()
        );
    }
    Ok(linker)
}

/// The host in the answer of `rustc -vV`.
pub(crate) fn host(version: &str) -> Option<&str> {
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_compilers_answer() {
        let version =
            "rustc 1.95.0 (x 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        assert_eq!(host(version), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(host("rustc 1.95.0"), None);
    }

    #[test]
    fn only_the_debian_route_needs_variables() {
        let rustup = WasmToolchain {
            name: None,
            linker: None,
        };
        assert!(rustup.environment().is_empty());
        let debian = WasmToolchain {
            name: Some("wasm"),
            linker: Some(PathBuf::from("/lld")),
        };
        let names: Vec<String> = debian.environment().into_iter().map(|(n, _)| n).collect();
        assert_eq!(
            names,
            [
                "RUSTUP_TOOLCHAIN",
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER"
            ]
        );
    }
}
