//! ONNX Runtime's shared library, for the native engine.

use std::env::consts;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Step;
use super::wheel::{self, Wheel};
use crate::workspace::Workspace;

pub(super) const STEP: Step = Step {
    name: "onnxruntime",
    what: "ONNX Runtime 1.31.1's shared library, which the native engine loads",
    done: |workspace| {
        let path = workspace.onnxruntime();
        Ok(path.is_file().then(|| path.display().to_string()))
    },
    make,
    advice: "install Python 3 with pip; or unpack a release of ONNX Runtime 1.24 or newer \
             (github.com/microsoft/onnxruntime/releases) and set ORT_DYLIB_PATH to its shared library",
    optional: false,
};

const REQUIREMENT: &str = "onnxruntime==1.31.1";

/// The vendor's own wheels are the one source that has the library for every platform and a
/// hash to hold it to.
fn wheel(os: &str, arch: &str) -> Option<Wheel> {
    let (platform, sha256) = match (os, arch) {
        ("linux", "x86_64") => (
            "manylinux_2_28_x86_64",
            "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536",
        ),
        ("linux", "aarch64") => (
            "manylinux_2_28_aarch64",
            "0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc",
        ),
        ("macos", "aarch64") => (
            "macosx_14_0_arm64",
            "96dd2564b10ea7153ad9c207e7cd8e5917cb3ba521e0e0a62ac03486fdc8d56c",
        ),
        ("windows", "x86_64") => (
            "win_amd64",
            "ae8a9a351efda685cc59a66226cdefaa37a126c1d66872ca23a2de9425326130",
        ),
        ("windows", "aarch64") => (
            "win_arm64",
            "fe8b9ac1ae8e894e12c47ee82e4f6dfc1835768133687257866469fda80d0bf1",
        ),
        _ => return None,
    };
    Some(Wheel {
        requirement: REQUIREMENT,
        sha256,
        platform: Some(platform),
    })
}

fn make(workspace: &Workspace) -> Result<String> {
    let Some(wheel) = wheel(consts::OS, consts::ARCH) else {
        bail!(
            "there is no build of ONNX Runtime for {} on {}",
            consts::OS,
            consts::ARCH
        );
    };
    let content = wheel::unpack(workspace, &wheel)?;
    let library = find_library(&content.join("onnxruntime/capi"))?;
    let path = workspace.onnxruntime();
    let folder = path.parent().context("the library's path has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // A rename within the cache: the library is there whole or not at all.
    fs::rename(&library, &path).with_context(|| format!("cannot move it to {}", path.display()))?;
    wheel::discard(&content);
    Ok(format!("{} is there", path.display()))
}

/// The library in a wheel: `libonnxruntime.so.1.31.1`, `libonnxruntime.1.31.1.dylib`, `onnxruntime.dll`.
fn find_library(folder: &Path) -> Result<PathBuf> {
    fs::read_dir(folder)
        .with_context(|| format!("the wheel has no folder {}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(is_library)
        })
        .with_context(|| format!("the wheel has no library in {}", folder.display()))
}

fn is_library(name: &str) -> bool {
    name.starts_with("libonnxruntime.so")
        || (name.starts_with("libonnxruntime.") && name.ends_with(".dylib"))
        || name == "onnxruntime.dll"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_told_from_its_neighbours() {
        for name in [
            "libonnxruntime.so.1.31.1",
            "libonnxruntime.1.31.1.dylib",
            "onnxruntime.dll",
        ] {
            assert!(is_library(name), "{name}");
        }
        for name in [
            "libonnxruntime_providers_shared.so",
            "onnxruntime_providers_shared.dll",
            "__init__.py",
        ] {
            assert!(!is_library(name), "{name}");
        }
    }

    #[test]
    fn every_pin_is_a_sha256_and_the_version_is_one() {
        assert!(REQUIREMENT.ends_with(crate::workspace::ONNXRUNTIME));
        assert!(STEP.what.contains(crate::workspace::ONNXRUNTIME));
        for os in ["linux", "macos", "windows"] {
            let wheel = wheel(os, "aarch64").unwrap();
            assert!(
                wheel.sha256.len() == 64 && wheel.sha256.bytes().all(|b| b.is_ascii_hexdigit())
            );
        }
        assert!(wheel("linux", "riscv64").is_none());
    }
}
