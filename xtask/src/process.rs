//! Running other programs: with their output shown, kept in a log, or read.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::report;
use crate::workspace::Workspace;

/// How much of a log is shown when its program failed.
const TAIL_LINES: usize = 40;

/// A program to run, with the workspace's environment.
pub(crate) struct Run {
    command: Command,
    shown: String,
    may_fail: bool,
}

impl Run {
    /// A program, started in the repository's root.
    pub(crate) fn new(workspace: &Workspace, program: impl AsRef<OsStr>) -> Result<Self> {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(&workspace.root)
            .envs(workspace.environment()?);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_xtask(name)) {
            command.env_remove(name);
        }
        Ok(Self {
            command,
            shown: program.as_ref().to_string_lossy().into_owned(),
            may_fail: false,
        })
    }

    /// Adds arguments.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            let arg = arg.as_ref();
            self.shown.push(' ');
            self.shown.push_str(&quoted(&arg.to_string_lossy()));
            self.command.arg(arg);
        }
        self
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets several variables.
    pub(crate) fn envs(mut self, all: impl IntoIterator<Item = (String, OsString)>) -> Self {
        self.command.envs(all);
        self
    }

    /// Starts it in another folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Says that another way is open when it fails: its output then stays in the log.
    pub(crate) fn attempt(mut self) -> Self {
        self.may_fail = true;
        self
    }

    /// Runs it with its output shown, and fails when it does.
    pub(crate) fn show(mut self) -> Result<()> {
        report::command(&self.shown);
        let status = self
            .command
            .status()
            .with_context(|| cannot_start(&self.shown))?;
        if !status.success() {
            bail!("`{}` failed ({status})", self.shown);
        }
        Ok(())
    }

    /// Runs it with its output in a log file of the cache; the log's end is shown when it fails.
    pub(crate) fn logged(mut self, workspace: &Workspace, name: &str) -> Result<()> {
        let folder = workspace.cache.join("logs");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(format!("{name}.log"));
        let mut log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let from = log.metadata().map(|m| m.len()).unwrap_or(0);
        writeln!(log, "$ {}", self.shown)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let spinner = report::waiting(&self.shown);
        let status = self
            .command
            .stdin(Stdio::null())
            .stdout(log.try_clone().context("cannot share the log file")?)
            .stderr(log)
            .status()
            .with_context(|| cannot_start(&self.shown));
        spinner.finish_and_clear();
        let status = status?;
        if !status.success() {
            if self.may_fail {
                let program = self.shown.split(' ').next().unwrap_or(&self.shown);
                bail!(
                    "`{program}` failed ({status}); why is in {}",
                    path.display()
                );
            }
            let text = fs::read(&path).unwrap_or_default();
            let text = text
                .get(usize::try_from(from).unwrap_or(0)..)
                .unwrap_or_default();
            report::quote(&tail(&String::from_utf8_lossy(text), TAIL_LINES));
            bail!(
                "`{}` failed ({status}); its whole output is in {}",
                self.shown,
                path.display()
            );
        }
        Ok(())
    }

    /// Starts it with all of its output in a file.
    pub(crate) fn start(mut self, to: File) -> Result<Child> {
        let both = to.try_clone().context("cannot share the file")?;
        self.command
            .stdin(Stdio::null())
            .stdout(both)
            .stderr(to)
            .spawn()
            .with_context(|| cannot_start(&self.shown))
    }

    /// Runs it and gives back its standard output; its errors go into the error.
    pub(crate) fn read(mut self) -> Result<String> {
        let output = self
            .command
            .stdin(Stdio::null())
            .output()
            .with_context(|| cannot_start(&self.shown))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let program = self.shown.split(' ').next().unwrap_or(&self.shown);
            bail!(
                "`{program}` failed ({}): {}",
                output.status,
                tail(errors.trim(), 10)
            );
        }
        self.text(output.stdout)
    }

    /// Runs it with what it says shown, and gives back its standard output.
    pub(crate) fn read_beside(mut self) -> Result<String> {
        report::command(&self.shown);
        let output = self
            .command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| cannot_start(&self.shown))?;
        if !output.status.success() {
            bail!("`{}` failed ({})", self.shown, output.status);
        }
        self.text(output.stdout)
    }

    fn text(&self, bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes)
            .with_context(|| format!("`{}` wrote something that is not UTF-8", self.shown))
    }

    /// Whether it runs and succeeds, with nothing shown.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

/// `cargo` in the repository's root.
pub(crate) fn cargo(workspace: &Workspace) -> Result<Run> {
    Run::new(workspace, "cargo")
}

/// `npm` (a script on Windows, which has to be named with its ending).
pub(crate) fn npm(workspace: &Workspace) -> Result<Run> {
    let name = if std::env::consts::OS == "windows" {
        "npm.cmd"
    } else {
        "npm"
    };
    Run::new(workspace, name)
}

/// Whether cargo set the variable for xtask alone, as the program that it runs. Some build scripts
/// watch what describes the package (ring's does): handed down, they would run again whenever
/// `cargo xtask` and plain cargo take turns, and everything above them would be compiled again.
/// Without these, `CARGO` would tell tools that they are run as cargo's subcommand.
fn is_about_xtask(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        name == "CARGO" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    })
}

fn cannot_start(shown: &str) -> String {
    let program = shown.split(' ').next().unwrap_or(shown);
    format!("`{program}` cannot be started: install it, or put it on PATH")
}

/// An argument as a shell would need it, for showing only.
fn quoted(arg: &str) -> String {
    if !arg.is_empty() && !arg.contains(|c: char| c.is_whitespace() || "\"'$*".contains(c)) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_the_last_lines() {
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("", 2), "");
    }

    #[test]
    fn what_cargo_says_about_xtask_stays_here() {
        for name in ["CARGO", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"] {
            assert!(is_about_xtask(name.as_ref()), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO_INCREMENTAL",
            "PATH",
        ] {
            assert!(!is_about_xtask(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn arguments_are_shown_so_that_they_can_be_copied() {
        assert_eq!(quoted("--all"), "--all");
        assert_eq!(quoted("two words"), "'two words'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
