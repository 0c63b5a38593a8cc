//! The wasm32 standard library: from rustup, else built from Debian's source.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Step, apt};
use crate::process::{Run, cargo};
use crate::report;
use crate::wasm::{DEBIAN_TOOLCHAIN, TARGET, WasmToolchain, remove_folder};
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "wasm32",
    what: "the standard library for wasm32-unknown-unknown, and its source, to compile for browsers",
    done: ready,
    make,
    advice: "with rustup and a network: `rustup target add wasm32-unknown-unknown` and `rustup component add rust-src`",
    optional: false,
};

fn ready(workspace: &Workspace) -> Result<Option<String>> {
    let Some(found) = WasmToolchain::find(workspace)? else {
        return Ok(None);
    };
    found.forget_stale(workspace)?;
    Ok(Some(found.describe()))
}

fn make(workspace: &Workspace) -> Result<String> {
    let rustup = |words: &[&str]| {
        let run = Run::new(workspace, "rustup")?.args(words);
        run.attempt().logged(workspace, "rustup")
    };
    let added = rustup(&["target", "add", TARGET]);
    // Every build of the npm package has a standard library of its own, made from its source.
    let added = added.and_then(|()| rustup(&["component", "add", "rust-src"]));
    if let Err(error) = added {
        report::word(&format!(
            "rustup has no way to it ({error:#}); taking Debian's compiler"
        ));
        from_debian(workspace)?;
    }
    match ready(workspace)? {
        Some(route) => Ok(route),
        None => bail!(
            "it was installed, and still nothing compiles for {TARGET}, or the library's source is not there"
        ),
    }
}

/// Debian ships a current compiler with its full source under names that end in `-web`. Its own
/// wasm package is for WASI only, so the standard library is built here, once.
fn from_debian(workspace: &Workspace) -> Result<()> {
    apt::install(
        workspace,
        &["rustc-web", "rust-web-src", "libstd-rust-web-dev"],
    )?;
    Run::new(workspace, "rustup")?
        .args(["toolchain", "link", DEBIAN_TOOLCHAIN, "/usr"])
        .logged(workspace, "rustup")?;

    let build = workspace.cache.join("wasm-std");
    remove_folder(&build)?;
    let library = build.join("library");
    copy_folder(&source()?, &library)?;
    // `force-unwind-tables=no`: wasm cannot unwind. `force-unstable-if-unmarked` and the metadata
    // variable mark the crates as the standard library's own. `embed-bitcode`: without it a later
    // fat LTO finds no bitcode in them. `simd128`: what .cargo/config.toml asks of every crate.
    cargo(workspace)?
        .args(["build", "--release", "--target", TARGET, "--manifest-path"])
        .args([library.join("sysroot").join("Cargo.toml")])
        .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_TARGET_DIR", build.join("target"))
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("__CARGO_DEFAULT_LIB_METADATA", "stablestd")
        .env(
            "RUSTFLAGS",
            "-Cforce-unwind-tables=no -Zforce-unstable-if-unmarked -Cembed-bitcode=yes -Ctarget-feature=+simd128",
        )
        .within(&library)
        .logged(workspace, "wasm-std")?;

    let sysroot = Run::new(workspace, "rustc")?
        .args(["--print", "sysroot"])
        .env("RUSTUP_TOOLCHAIN", DEBIAN_TOOLCHAIN)
        .read()?;
    let installed = Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET);
    install(
        workspace,
        &build.join("target").join(TARGET).join("release/deps"),
        &installed,
    )?;
    remove_folder(&build)
}

/// Debian's `library` folder; its name holds the compiler's version.
fn source() -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/src")
        .context("/usr/src cannot be read")?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|name| name.starts_with("rustc-"))
        })
        .map(|path| path.join("library"))
        .filter(|path| path.join("sysroot/Cargo.toml").is_file())
        .collect();
    found.sort();
    found
        .pop()
        .context("rust-web-src put no library source under /usr/src")
}

/// Puts the built libraries where the compiler looks; the old ones go, two of a kind would clash.
fn install(workspace: &Workspace, built: &Path, installed: &Path) -> Result<()> {
    let mut libraries = Vec::new();
    for entry in
        fs::read_dir(built).with_context(|| format!("{} cannot be read", built.display()))?
    {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("rlib")) {
            libraries.push(path);
        }
    }
    if libraries.is_empty() {
        bail!("the build left no libraries in {}", built.display());
    }
    let as_root = apt::as_root(workspace)?;
    let run = |words: Vec<&OsStr>| -> Result<()> {
        let mut all: Vec<&OsStr> = as_root.iter().map(OsStr::new).collect();
        all.extend(words);
        let (program, args) = all.split_first().context("no command")?;
        Run::new(workspace, program)?
            .args(args)
            .logged(workspace, "wasm-std")
    };
    let folder = installed.join("lib");
    run(vec!["rm".as_ref(), "-rf".as_ref(), installed.as_ref()])?;
    run(vec!["mkdir".as_ref(), "-p".as_ref(), folder.as_ref()])?;
    let mut words: Vec<&OsStr> = vec![
        "cp".as_ref(),
        "--target-directory".as_ref(),
        folder.as_ref(),
    ];
    words.extend(libraries.iter().map(|path| path.as_os_str()));
    run(words)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("{} cannot be read", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // `metadata` follows links, which Debian uses for vendored crates.
        if fs::metadata(entry.path())?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_copied_whole() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("a/b/c"), "text").unwrap();
        copy_folder(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b/c")).unwrap(), "text");
    }
}
