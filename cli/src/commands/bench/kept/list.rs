//! `isovec bench --list`.

use std::fmt::Write as _;
use std::io::ErrorKind;

use serde::Serialize;

use super::place::{Place, folder};
use super::{Benchmark, Machine};
use crate::commands;
use crate::error::{CliError, Result};

/// A line of the list.
#[derive(Debug, Serialize)]
struct Line {
    name: String,
    date: Option<String>,
    isovec: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    machine: Option<Machine>,
    this_machine: Option<bool>,
    figures: Option<usize>,
    /// Why it cannot be read.
    error: Option<String>,
}

/// Prints what is kept under a name.
pub(in crate::commands::bench) fn list(json: bool) -> Result<()> {
    let here = Machine::detect()?;
    let lines: Vec<Line> = names()?
        .iter()
        .map(|name| line(name, &here))
        .collect::<Result<_>>()?;
    if json {
        return commands::print_json(&lines);
    }
    let mut page = String::new();
    for line in &lines {
        let _ = match (&line.error, &line.machine) {
            (Some(error), _) => writeln!(page, "{:<24} {error}", line.name),
            (None, machine) => writeln!(
                page,
                "{:<24} {}  isovec {}, {} on {}; {}",
                line.name,
                line.date.as_deref().unwrap_or_default(),
                line.isovec.as_deref().unwrap_or_default(),
                line.model.as_deref().unwrap_or_default(),
                line.provider.as_deref().unwrap_or_default(),
                match (line.this_machine, machine) {
                    (Some(true), _) | (_, None) => "this machine".to_owned(),
                    (_, Some(machine)) => machine.to_string(),
                },
            ),
        };
    }
    if lines.is_empty() {
        page.push_str("no benchmark is saved; `isovec bench --save NAME` saves one\n");
    }
    commands::print(&page)
}

fn names() -> Result<Vec<String>> {
    let Some(folder) = folder() else {
        return Ok(Vec::new());
    };
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(CliError::io(folder.display().to_string()))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(CliError::io(folder.display().to_string()))?;
        let name = entry.file_name().into_string().unwrap_or_default();
        // What else lies there was not put there under a name.
        let name = name.strip_suffix(".json").map(str::to_owned);
        names.extend(
            name.filter(|name| Place::new(name).is_ok_and(|place| place.path() == entry.path())),
        );
    }
    names.sort();
    Ok(names)
}

fn line(name: &str, here: &Machine) -> Result<Line> {
    let found = Benchmark::read(&Place::new(name)?);
    let error = match &found {
        Ok(_) => None,
        Err(CliError::Kept { error, .. }) => Some(error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    let found = found.ok();
    let found = found.as_ref();
    Ok(Line {
        name: name.to_owned(),
        date: found.map(|found| found.date.clone()),
        isovec: found.map(|found| found.isovec.clone()),
        model: found.map(|found| found.model.clone()),
        provider: found.map(|found| found.provider.clone()),
        machine: found.map(|found| found.machine.clone()),
        this_machine: found.map(|found| found.machine.id == here.id),
        figures: found.map(|found| found.figures.len()),
        error,
    })
}
