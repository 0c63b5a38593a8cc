//! `cargo xtask test`: every check of the project, in two lanes (`beside.rs`). A failed check does not stop the rest; the table
//! at the end names them all, and its last line counts them.

mod arm;
mod beside;
mod browser;
mod changed;
mod clients;
mod cross;
mod datafusion;
mod fastembed;
mod hygiene;
mod lint;
mod memory;
mod native;
mod node;
mod packages;
mod passed;
mod python;
mod servers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::report::{self, Line, Outcome};
use crate::setup;
use crate::workspace::Workspace;

use beside::Beside;
use changed::Broken;
use passed::Passed;

/// One check.
struct Check {
    name: &'static str,
    what: &'static str,
    /// Whether it may come out otherwise than before a change.
    concerned: fn(&Broken) -> bool,
    /// Whether the change is in what this check alone looks at. Of other changes `--since-passed` leaves it to a run of the
    /// whole, and where this machine has no note of it, it asks for what differs from the last such run. `None`: it is left to
    /// none, and a machine without a note runs it.
    own: Option<fn(&Broken) -> bool>,
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

/// The modules by their names, with their checks.
const CHECKS: &[(&str, &[Check])] = &[
    ("lint", lint::CHECKS),
    ("native", native::CHECKS),
    ("arm", arm::CHECKS),
    ("browser", browser::CHECKS),
    ("packages", packages::CHECKS),
    ("node", node::CHECKS),
    ("python", python::CHECKS),
    ("clients", clients::CHECKS),
    ("servers", servers::CHECKS),
    ("fastembed", fastembed::CHECKS),
    ("datafusion", datafusion::CHECKS),
    ("cross", cross::CHECKS),
    ("hygiene", hygiene::CHECKS),
    ("memory", memory::CHECKS),
];

/// Checks that bring or take too much to be run unasked.
const BY_NAME: &[&str] = &["next", "datafusion", "miri", "sanitizers"];

fn checks() -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().flat_map(|(_, checks)| *checks)
}

fn is_module_of_checks(name: &str) -> bool {
    CHECKS.iter().any(|(module, _)| *module == name)
}

impl Check {
    /// Whether its own module differs.
    fn differs(&self, broken: &Broken) -> bool {
        CHECKS.iter().any(|(module, checks)| {
            broken.in_checks_of(module) && checks.iter().any(|check| check.name == self.name)
        })
    }

    /// Whether it may come out otherwise.
    fn is_concerned(&self, broken: &Broken) -> bool {
        (self.concerned)(broken) || self.differs(broken)
    }

    /// Whether it may come out otherwise, and is not left to a run of the whole.
    fn is_asked(&self, broken: &Broken) -> bool {
        self.is_concerned(broken)
            && self
                .own
                .is_none_or(|own| own(broken) || self.differs(broken))
    }
}

/// The names and what they do.
pub(crate) fn list() {
    for check in checks() {
        println!("{:16} {}", check.name, check.what);
    }
}

/// The part of the chosen checks that runs.
pub(crate) enum Part<'a> {
    /// All.
    Whole,
    /// Those that the changes since this commit can break.
    Changed(&'a str),
    /// Those that the changes since the commit on which they last passed on this machine can break, but for those that are left
    /// to a run of the whole.
    SincePassed,
}

/// Checks that always run, because they cost nothing. A run with nothing else to do still looks at the clone.
const ALWAYS: &[&str] = &["format"];

/// A check, and what a change can have broken if only a part of the check has to run.
type Job = (&'static Check, Option<Broken>);

/// Runs the named checks, or all that need not be named; of these, only the part that is asked for. `true` when none failed.
/// `told` is the file of a run beside another.
pub(crate) fn run(
    workspace: &Workspace,
    names: &[String],
    part: &Part<'_>,
    told: Option<&str>,
) -> Result<bool> {
    let chosen = choose(names)?;
    let mut passed = Passed::read(workspace)?;
    let (mut jobs, mut lines) = jobs(workspace, chosen, part, !names.is_empty(), &passed)?;
    if told.is_none() {
        lines.extend(set_up(workspace, &jobs));
    }
    let pages = |(check, _): &Job| beside::is_of_pages(check);
    let has_both = jobs.iter().any(pages) && !jobs.iter().all(pages);
    let other = match told.is_none() && has_both {
        true => {
            let all = jobs.extract_if(.., |job| pages(job));
            let names = all.map(|(check, _)| check.name).collect();
            Some(Beside::start(workspace, names, part)?)
        }
        false => None,
    };
    for (at, job) in jobs.iter().enumerate() {
        let (check, _) = job;
        report::step(at + 1, jobs.len(), check.name, check.what);
        let started = Instant::now();
        let outcome = outcome(workspace, job, part, &mut passed)?;
        lines.push(Line {
            name: check.name,
            outcome,
            took: started.elapsed(),
        });
    }
    if let Some(told) = told {
        beside::write(told, &lines)?;
    }
    if let Some(other) = other {
        lines.extend(other.finish());
    }
    if told.is_none() {
        println!("{}", report::summary(&lines));
    }
    let passed = |line: &Line| matches!(line.outcome, Outcome::Passed);
    if matches!(part, Part::Whole)
        && names.is_empty()
        && lines.iter().all(passed)
        && let Some(commit) = passed::clean_commit(workspace)?
    {
        eprintln!("\nThe whole passed: {} may name {commit}.", passed::WHOLE);
    }
    Ok(!lines
        .iter()
        .any(|line| matches!(line.outcome, Outcome::Failed(_))))
}

/// Runs the set-up steps without which the checks cannot run, if there are any.
fn set_up(workspace: &Workspace, jobs: &[Job]) -> Option<Line> {
    let needs = jobs.iter().flat_map(|(check, _)| check.needs);
    let needs: Vec<&str> = needs.copied().collect();
    if needs.is_empty() {
        return None;
    }
    let started = Instant::now();
    let outcome = match setup::run(workspace, &needs) {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    };
    Some(Line {
        name: "setup",
        outcome,
        took: started.elapsed(),
    })
}

/// Runs a check, and notes that it passed.
fn outcome(
    workspace: &Workspace,
    (check, broken): &Job,
    part: &Part<'_>,
    passed: &mut Passed,
) -> Result<Outcome> {
    let before = passed::clean_commit(workspace)?;
    let verdict = match broken {
        Some(broken) if check.name == "native" => native::part(workspace, broken),
        _ => (check.run)(workspace),
    };
    Ok(match verdict {
        Ok(Verdict::Passed) => {
            // `--changed` does not show that the rest of the check passed at its commit.
            let is_whole = !matches!(part, Part::Changed(_));
            if let Some(commit) = before.filter(|_| is_whole)
                && passed::clean_commit(workspace)?.as_ref() == Some(&commit)
            {
                passed.note(check.name, &commit)?;
            }
            Outcome::Passed
        }
        Ok(Verdict::Skipped(reason)) => {
            report::word(&format!("skipped: {reason}"));
            Outcome::Skipped(reason)
        }
        Err(error) => {
            report::word(&format!("FAILED: {error:#}"));
            Outcome::Failed(format!("{error:#}"))
        }
    })
}

/// The jobs of the chosen checks, and a line of the summary for each check that need not run. What is named is left to nobody.
fn jobs(
    workspace: &Workspace,
    chosen: Vec<&'static Check>,
    part: &Part<'_>,
    are_named: bool,
    passed: &Passed,
) -> Result<(Vec<Job>, Vec<Line>)> {
    let (mut jobs, mut lines) = (Vec::new(), Vec::new());
    // Most checks passed on the same commit.
    let mut known: BTreeMap<String, Broken> = BTreeMap::new();
    if let Part::Changed(base) = part {
        known.insert((*base).to_owned(), changed::since(workspace, base)?);
    }
    let whole = passed::whole(workspace);
    for check in chosen {
        let start = match part {
            Part::Whole => None,
            Part::Changed(base) => Some((*base).to_owned()),
            Part::SincePassed => {
                let noted = passed.commit(check.name).map(str::to_owned);
                let noted = noted.filter(|commit| passed::has_commit(workspace, commit));
                noted.or_else(|| whole.clone().filter(|_| check.own.is_some() && !are_named))
            }
        };
        let Some(start) = start else {
            jobs.push((check, None));
            continue;
        };
        if !known.contains_key(&start) {
            known.insert(start.clone(), changed::from(workspace, &start)?);
        }
        let broken = &known[&start];
        let runs = match part {
            Part::SincePassed if !are_named => check.is_asked(broken),
            _ => check.is_concerned(broken),
        };
        if runs || ALWAYS.contains(&check.name) {
            jobs.push((check, Some(broken.clone())));
        } else {
            let start = start.get(..12).unwrap_or(&start);
            let reason = match check.is_concerned(broken) {
                true => format!(
                    "left to `cargo xtask test`: nothing that it alone looks at differs from {start}"
                ),
                false => format!("nothing that it looks at differs from {start}"),
            };
            lines.push(Line {
                name: check.name,
                outcome: Outcome::Skipped(reason),
                took: Duration::ZERO,
            });
        }
    }
    Ok((jobs, lines))
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
    use std::collections::BTreeSet;

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
    fn the_document_names_the_checks_that_are_left_to_the_whole() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../CONTRIBUTING.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, section) = text.split_once("## Which checks run").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix('|'));
        let cells = rows.filter_map(|row| row.split('|').next());
        let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let named: BTreeSet<&str> = named.collect();
        let left = checks().filter(|check| check.own.is_some());
        assert_eq!(named, left.map(|check| check.name).collect());
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
