//! Which toolchain compiles for wasm32, and with which linker.
//!
//! Two routes lead to the wasm32 standard library: `rustup target add`, and, where rustup's server cannot be reached,
//! Debian's compiler with a standard library built from its source. All builds for wasm ask here which route was
//! taken.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

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
    /// Finds the first route that compiles a small program and has the library's source, or nothing.
    pub(crate) fn find(workspace: &Workspace) -> Result<Option<Self>> {
        for name in [None, Some(DEBIAN_TOOLCHAIN)] {
            if compiles(workspace, name)? && has_source(workspace, name)? {
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
            None => bail!(
                "no toolchain compiles for {TARGET} and has its library's source: run `cargo xtask setup wasm32`"
            ),
        }
    }

    /// What cargo and npm scripts must be told to build for wasm32.
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

    /// Throws away what was compiled against another standard library. Cargo does not see that a
    /// sysroot changed, and would fail with "can't find crate" on everything that it kept.
    pub(crate) fn forget_stale(&self, workspace: &Workspace) -> Result<()> {
        let sysroot = sysroot(workspace, self.name)?;
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        let inventory = inventory(&library)?;
        // The npm package's builds have folders and standard libraries of their own.
        keep_only_if_same(&workspace.target.join(TARGET), &inventory)
    }

    /// The route in words.
    pub(crate) fn describe(&self) -> String {
        match self.name {
            None => "the toolchain in use has it".to_owned(),
            Some(name) => format!("the toolchain `{name}` (Debian's compiler) has it"),
        }
    }
}

/// A toolchain's folder.
fn sysroot(workspace: &Workspace, name: Option<&str>) -> Result<PathBuf> {
    let mut run = Run::new(workspace, "rustc")?;
    if let Some(name) = name {
        run = run.env("RUSTUP_TOOLCHAIN", name);
    }
    let sysroot = run.args(["--print", "sysroot"]).read()?;
    Ok(PathBuf::from(sysroot.trim()))
}

/// Whether a toolchain has the standard library's source: every build of the npm package has a
/// library of its own, made from it.
fn has_source(workspace: &Workspace, name: Option<&str>) -> Result<bool> {
    let library = sysroot(workspace, name)?.join("lib/rustlib/src/rust/library");
    Ok(library.join("std/Cargo.toml").is_file())
}

/// Whether a toolchain compiles for wasm32: the only proof that a standard library is there and
/// was built by this very compiler, which a look at files cannot give.
fn compiles(workspace: &Workspace, name: Option<&str>) -> Result<bool> {
    let folder = workspace.cache.join("probe");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let source = folder.join("probe.rs");
    fs::write(
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

/// The files of a folder with their sizes and the second of their last change, a line each: two
/// builds of one standard library have the same names and sizes, and still do not fit each other.
fn inventory(folder: &Path) -> Result<String> {
    let unreadable = || format!("{} cannot be read", folder.display());
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let about = entry.metadata().with_context(unreadable)?;
        let changed = about
            .modified()
            .with_context(unreadable)?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        lines.push(format!(
            "{} {} {}\n",
            entry.file_name().display(),
            about.len(),
            changed.as_secs()
        ));
    }
    lines.sort();
    Ok(lines.concat())
}

/// Empties a folder of build products unless they were made with the library of that inventory,
/// and leaves the inventory in it.
fn keep_only_if_same(products: &Path, inventory: &str) -> Result<()> {
    let stamp = products.join("standard-library.txt");
    if fs::read_to_string(&stamp).is_ok_and(|kept| kept == inventory) {
        return Ok(());
    }
    remove_folder(products)?;
    fs::create_dir_all(products).with_context(|| format!("cannot make {}", products.display()))?;
    fs::write(&stamp, inventory).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Removes a folder with all that is in it; one that is not there is as good.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
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
    fn products_of_another_standard_library_are_thrown_away() {
        let dir = tempfile::tempdir().unwrap();
        let (library, products) = (dir.path().join("lib"), dir.path().join("products"));
        fs::create_dir_all(&library).unwrap();
        fs::write(library.join("libcore.rlib"), "one").unwrap();
        let product = products.join("libisovec.rlib");

        keep_only_if_same(&products, &inventory(&library).unwrap()).unwrap();
        fs::write(&product, "built").unwrap();
        keep_only_if_same(&products, &inventory(&library).unwrap()).unwrap();
        assert!(product.exists(), "the same library keeps them");

        let rebuilt = fs::File::options()
            .append(true)
            .open(library.join("libcore.rlib"))
            .unwrap();
        rebuilt.set_modified(UNIX_EPOCH).unwrap();
        keep_only_if_same(&products, &inventory(&library).unwrap()).unwrap();
        assert!(!product.exists(), "only the time of its build differs");
        remove_folder(&products).unwrap();
        remove_folder(&products).unwrap();
        assert!(!products.exists());
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
