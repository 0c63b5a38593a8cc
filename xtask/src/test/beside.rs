//! Checks that run beside the others. Those of pages wait for browsers much of the time, and most of the others compute: on two
//! cores both lanes together take little longer than one of them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::{Check, Part, checks};
use crate::process::Run;
use crate::report::{self, Line, Outcome};
use crate::workspace::Workspace;

/// The checks of pages, and that of node. They stay in one lane, because they build the same package.
const PAGES: &[&str] = &["browser", "firefox", "npm", "page", "everywhere", "node"];

/// Whether a check can run beside those that are not.
pub(super) fn is_of_pages(check: &Check) -> bool {
    PAGES.contains(&check.name)
}

/// How a check ended, as one process tells another.
#[derive(Serialize, Deserialize)]
struct Ended {
    name: String,
    word: String,
    reason: String,
    seconds: f64,
}

/// Writes how checks ended.
pub(super) fn write(path: &str, lines: &[Line]) -> Result<()> {
    let ended = lines.iter().map(|line| {
        let (word, reason) = line.outcome.words();
        Ended {
            name: line.name.into(),
            word: word.into(),
            reason: reason.into(),
            seconds: line.took.as_secs_f64(),
        }
    });
    let text = serde_json::to_vec(&ended.collect::<Vec<_>>()).context("plain JSON")?;
    fs::write(path, text).with_context(|| format!("cannot write {path}"))
}

fn read(path: &str) -> Result<Vec<Line>> {
    let text = fs::read(path).with_context(|| format!("cannot read {path}"))?;
    let all: Vec<Ended> = serde_json::from_slice(&text).with_context(|| path.to_owned())?;
    let line = |ended: Ended| {
        let check = checks().find(|check| check.name == ended.name);
        let Some(check) = check else {
            bail!("{path} names a check {}", ended.name);
        };
        Ok(Line {
            name: check.name,
            outcome: Outcome::of_words(&ended.word, ended.reason),
            took: Duration::from_secs_f64(ended.seconds.max(0.0)),
        })
    };
    all.into_iter().map(line).collect()
}

/// Checks that run in another process.
pub(super) struct Beside {
    child: Child,
    names: Vec<&'static str>,
    log: PathBuf,
    told: tempfile::NamedTempFile,
}

impl Beside {
    /// Starts these checks. Set-up has to be done.
    pub(super) fn start(
        workspace: &Workspace,
        names: Vec<&'static str>,
        part: &Part<'_>,
    ) -> Result<Self> {
        let told = tempfile::NamedTempFile::new().context("cannot make a file")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut run = Run::new(workspace, program)?.args(["test"]).args(&names);
        run = match part {
            Part::Whole => run,
            Part::Changed(base) => run.args([format!("--changed={base}")]),
            Part::SincePassed => run.args(["--since-passed"]),
        };
        run = run.args(["--beside".as_ref(), told.path().as_os_str()]);
        let folder = workspace.cache.join("logs");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let log = folder.join("beside.log");
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        report::word(&format!(
            "beside the others: {}; what they say stands below, and until then in {}",
            names.join(", "),
            log.display()
        ));
        let child = run.start(file)?;
        Ok(Self {
            child,
            names,
            log,
            told,
        })
    }

    /// Waits for them, shows what they said, and gives a line for each. If their process ended early, each has failed.
    pub(super) fn finish(mut self) -> Vec<Line> {
        self.ended().unwrap_or_else(|error| {
            let failed = |&name| Line {
                name,
                outcome: Outcome::Failed(format!("{error:#}")),
                took: Duration::ZERO,
            };
            self.names.iter().map(failed).collect()
        })
    }

    fn ended(&mut self) -> Result<Vec<Line>> {
        let status = self.child.wait().context("cannot wait for the lane")?;
        println!("\ncargo xtask test {}", self.names.join(" "));
        let mut log = File::open(&self.log).context("cannot read a log")?;
        std::io::copy(&mut log, &mut std::io::stdout()).context("cannot show a log")?;
        let path = self.told.path().to_string_lossy();
        read(&path).with_context(|| format!("its lane ended early ({status})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_writes_another_reads() {
        let told = tempfile::NamedTempFile::new().unwrap();
        let path = told.path().to_string_lossy();
        assert!(read(&path).is_err(), "nothing was written");
        let outcomes = [
            Outcome::Passed,
            Outcome::Skipped("no browser".into()),
            Outcome::Failed("two tests".into()),
        ];
        let lines: Vec<Line> = PAGES
            .iter()
            .zip(outcomes)
            .map(|(&name, outcome)| Line {
                name,
                outcome,
                took: Duration::from_millis(1500),
            })
            .collect();
        write(&path, &lines).unwrap();
        let again = read(&path).unwrap();
        assert_eq!(report::summary(&again), report::summary(&lines));
    }

    #[test]
    fn checks_whose_process_ends_early_have_failed() {
        let folder = tempfile::tempdir().unwrap();
        let beside = Beside {
            child: std::process::Command::new(std::env::current_exe().unwrap())
                .arg("--list")
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap(),
            names: vec!["npm", "page"],
            log: folder.path().join("none.log"),
            told: tempfile::NamedTempFile::new().unwrap(),
        };
        let lines = beside.finish();
        let failed = |line: &Line| matches!(line.outcome, Outcome::Failed(_));
        assert!(lines.len() == 2 && lines.iter().all(failed));
    }

    #[test]
    fn the_checks_of_pages_exist() {
        assert_eq!(
            checks().filter(|check| is_of_pages(check)).count(),
            PAGES.len()
        );
    }
}
