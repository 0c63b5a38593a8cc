//! A Chromium and the driver that tests steer it with.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Step, apt};
use crate::process::Run;
use crate::workspace::{Workspace, which};

pub(super) const STEP: Step = Step {
    name: "browser",
    what: "Chromium (or Chrome) and its chromedriver, to test in a real browser",
    done: |workspace| Ok(Browser::find(workspace).ok().map(|b| b.describe())),
    make: |workspace| {
        apt::install(workspace, &["chromium", "chromium-driver"])?;
        Ok(Browser::find(workspace)?.describe())
    },
    advice: "macOS: `brew install --cask google-chrome chromedriver`; Windows: `winget install Google.Chrome` \
             and the chromedriver of the same version from googlechromelabs.github.io/chrome-for-testing; \
             elsewhere your system's chromium and chromedriver packages. CHROME and CHROMEDRIVER may name them",
    optional: false,
};

/// A browser and its driver that exist.
pub(crate) struct Browser {
    /// The browser's program.
    pub(crate) program: PathBuf,
    /// The driver's program.
    pub(crate) driver: PathBuf,
}

impl Browser {
    /// What the variables name, else what is on `PATH` or in the usual places.
    pub(crate) fn find(workspace: &Workspace) -> Result<Self> {
        let program = named("CHROME")?
            .or_else(|| {
                [
                    "chromium",
                    "chromium-browser",
                    "google-chrome",
                    "google-chrome-stable",
                    "chrome",
                ]
                .iter()
                .find_map(|name| which(workspace, name))
            })
            .or_else(|| {
                usual_places(env::consts::OS)
                    .into_iter()
                    .find(|path| path.is_file())
            })
            .context("neither chromium nor google-chrome was found")?;
        let driver = named("CHROMEDRIVER")?
            .or_else(|| which(workspace, "chromedriver"))
            .context("chromedriver was not found")?;
        Ok(Self { program, driver })
    }

    pub(super) fn describe(&self) -> String {
        format!("{} and {}", self.program.display(), self.driver.display())
    }

    /// Fails with a plain word when the two are of different versions, which otherwise ends in a
    /// session that never starts.
    pub(crate) fn check(&self, workspace: &Workspace) -> Result<()> {
        // A browser on Windows opens a window when it is asked for its version.
        if env::consts::OS == "windows" {
            return Ok(());
        }
        let major = |path: &Path| -> Result<Option<String>> {
            Ok(major(
                &Run::new(workspace, path)?.args(["--version"]).read()?,
            ))
        };
        let (browser, driver) = (major(&self.program)?, major(&self.driver)?);
        if browser != driver {
            bail!(
                "the browser is version {} and its driver {}: install two of the same version",
                browser.as_deref().unwrap_or("unknown"),
                driver.as_deref().unwrap_or("unknown")
            );
        }
        Ok(())
    }
}

/// A program that the user names himself has to exist.
pub(super) fn named(variable: &str) -> Result<Option<PathBuf>> {
    match env::var_os(variable).filter(|v| !v.is_empty()) {
        None => Ok(None),
        Some(path) => {
            let path = PathBuf::from(path);
            if !path.is_file() {
                bail!("{variable} names {}, which is no file", path.display());
            }
            Ok(Some(path))
        }
    }
}

fn usual_places(os: &str) -> Vec<PathBuf> {
    let places: &[&str] = match os {
        "macos" => &[
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
            "/Applications/Chromium.app/Contents/MacOS/Chromium",
        ],
        "windows" => &[
            r"C:\Program Files\Google\Chrome\Application\chrome.exe",
            r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
        ],
        _ => &[],
    };
    places.iter().map(PathBuf::from).collect()
}

/// The first number of the first version in an answer such as `Chromium 156.0.8078.79 built on …`.
fn major(answer: &str) -> Option<String> {
    let version = answer
        .split_whitespace()
        .find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))?;
    version.split('.').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_both_programs() {
        assert_eq!(
            major("Chromium 156.0.8078.79 built on Debian GNU/Linux 12").as_deref(),
            Some("156")
        );
        assert_eq!(
            major("ChromeDriver 156.0.8078.79 (abc)").as_deref(),
            Some("156")
        );
        assert_eq!(major("Google Chrome 99.0.1").as_deref(), Some("99"));
        assert_eq!(major("nothing"), None);
    }
}
