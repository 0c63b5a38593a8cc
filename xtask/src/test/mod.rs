//! `cargo xtask test`: every check of the project, one after another. A failed check does not
//! stop the rest; the table at the end names them all, and its last line counts them.

mod browser;
mod changed;
mod cross;
mod fastembed;
mod hygiene;
mod lint;
mod memory;
mod native;
mod packages;

use std::time::Instant;

use anyhow::{Result, bail};

use crate::report::{self, Line, Outcome};
use crate::setup;
use crate::workspace::Workspace;

/// One check.
struct Check {
    name: &'static str,
    what: &'static str,
    /// Whether it may come out otherwise than before a change.
    concerned: fn(&changed::Broken) -> bool,
    /// The set-up steps without which it cannot run.
    needs: &'static [&'static str],
    run: fn(&Workspace) -> Result<Verdict>,
}

/// How a check that did not fail ended.
enum Verdict {
    Passed,
    /// This machine cannot run it, for this reason.
    Skipped(String),
}

const CHECKS: &[&[Check]] = &[
    lint::CHECKS,
    native::CHECKS,
    browser::CHECKS,
    packages::CHECKS,
    fastembed::CHECKS,
    cross::CHECKS,
    hygiene::CHECKS,
    memory::CHECKS,
];

/// Checks that bring or take too much to be run unasked.
const BY_NAME: &[&str] = &["next", "miri", "sanitizers"];

fn checks() -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().copied().flatten()
}

/// The names and what they do.
pub(crate) fn list() {
    for check in checks() {
        println!("{:16} {}", check.name, check.what);
    }
}

/// Runs the named checks, or all that need not be named; of these, with `changed`, only what the changes since that
/// commit can break. `true` when none failed.
pub(crate) fn run(workspace: &Workspace, names: &[String], changed: Option<&str>) -> Result<bool> {
    let mut chosen = choose(names)?;
    let mut lines = Vec::new();
    let mut part = None;
    if let Some(base) = changed {
        let broken = changed::since(workspace, base)?;
        chosen.retain(|check| (check.concerned)(&broken));
        let left: Vec<_> = chosen.iter().map(|check| check.name).collect();
        report::word(&format!(
            "since {base}: {}",
            match &left[..] {
                [] => "nothing that a check looks at".to_owned(),
                left => left.join(", "),
            }
        ));
        part = Some(broken);
    }

    let needs: Vec<&str> = chosen
        .iter()
        .flat_map(|check| check.needs.iter().copied())
        .collect();
    if !needs.is_empty() {
        let started = Instant::now();
        let outcome = match setup::run(workspace, &needs) {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        lines.push(Line {
            name: "setup",
            outcome,
            took: started.elapsed(),
        });
    }
    for (at, check) in chosen.iter().enumerate() {
        report::step(at + 1, chosen.len(), check.name, check.what);
        let started = Instant::now();
        let verdict = match &part {
            Some(broken) if check.name == "native" => native::part(workspace, broken),
            _ => (check.run)(workspace),
        };
        let outcome = match verdict {
            Ok(Verdict::Passed) => Outcome::Passed,
            Ok(Verdict::Skipped(reason)) => {
                report::word(&format!("skipped: {reason}"));
                Outcome::Skipped(reason)
            }
            Err(error) => {
                report::word(&format!("FAILED: {error:#}"));
                Outcome::Failed(format!("{error:#}"))
            }
        };
        lines.push(Line {
            name: check.name,
            outcome,
            took: started.elapsed(),
        });
    }
    println!("{}", report::summary(&lines));
    Ok(!lines
        .iter()
        .any(|line| matches!(line.outcome, Outcome::Failed(_))))
}

/// The checks a user named, in running order; where none is named all but those of `BY_NAME`.
fn choose(names: &[String]) -> Result<Vec<&'static Check>> {
    for name in names {
        if !checks().any(|check| check.name == name) {
            let known: Vec<_> = checks().map(|check| check.name).collect();
            bail!(
                "there is no check {name:?}; the checks are {}",
                known.join(", ")
            );
        }
    }
    Ok(checks()
        .filter(|check| {
            let named = names.iter().any(|name| check.name == name);
            named || (names.is_empty() && !BY_NAME.contains(&check.name))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_choose_checks_in_running_order() {
        let named = |names: &[&str]| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            choose(&names)
                .unwrap()
                .iter()
                .map(|check| check.name)
                .collect()
        };
        assert_eq!(named(&["native", "format"]), ["format", "native"]);
        let all: Vec<_> = checks().map(|check| check.name).collect();
        for name in BY_NAME {
            assert_eq!(named(&[*name]), [*name]);
        }
        let unasked: Vec<_> = all
            .into_iter()
            .filter(|name| !BY_NAME.contains(name))
            .collect();
        assert_eq!(named(&[]), unasked);
        let Err(error) = choose(&["wsam".to_owned()]) else {
            panic!("an unknown name was taken")
        };
        assert!(error.to_string().contains("wsam"));
    }

    #[test]
    fn names_are_unique_and_needs_exist() {
        let all: Vec<_> = checks().collect();
        for (at, check) in all.iter().enumerate() {
            assert!(
                all[at + 1..].iter().all(|other| other.name != check.name),
                "{}",
                check.name
            );
            let needs: Vec<String> = check.needs.iter().map(|n| (*n).to_owned()).collect();
            assert!(setup::choose(&needs).is_ok(), "{}", check.name);
        }
    }

    #[test]
    fn the_workflow_names_checks_that_exist() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../.github/workflows/ci.yml");
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split("run: cargo xtask test").nth(1))
            .collect();
        assert!(!lines.is_empty());
        for line in lines {
            let names: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert!(choose(&names).is_ok(), "{line}");
        }
    }
}
