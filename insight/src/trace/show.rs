//! Summaries for people.

use std::fmt::{self, Display, Write};

use crate::graph::plain;

use super::compare::Comparison;
use super::path::{CriticalPath, Step};
use super::summary::{Summary, Times};

/// A table: names to the left, numbers to the right.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()],
        }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::from("  ");
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(line, "{cell:<width$}")?,
                    _ => write!(line, "  {cell:>width$}")?,
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A time with its unit.
pub(super) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        0.0 => return "0".into(),
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    match value {
        v if v >= 99.95 => format!("{v:.0} {unit}"),
        v if v >= 9.995 => format!("{v:.1} {unit}"),
        v => format!("{v:.2} {unit}"),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// A name that has room in a table.
fn short(name: &str) -> String {
    const MOST: usize = 60;
    let name = plain(name);
    match name.chars().count() > MOST {
        true => name.chars().take(MOST - 1).chain(['…']).collect(),
        false => name,
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} events in {}",
            plain(&self.file),
            self.events,
            time(self.seconds)
        )?;
        match self.producer.as_str() {
            "" => writeln!(f)?,
            producer => writeln!(f, ", by {}", short(producer))?,
        }
        for fault in &self.faults {
            writeln!(f, "  note: {fault}")?;
        }
        if self.spans == 0 {
            return writeln!(f, "\nIt has no spans.");
        }
        writeln!(f, "\nstages")?;
        let mut table = Table::new(&["", "count", "total", "mean", "p50", "p99", "max"]);
        for stage in &self.stages {
            table.row(
                [short(&stage.name), stage.count.to_string()]
                    .into_iter()
                    .chain([stage.total, stage.mean, stage.p50, stage.p99, stage.max].map(time)),
            );
        }
        write!(f, "{table}")?;
        let operators = self.stages.iter().any(|stage| stage.name == "operator");
        writeln!(f, "\n{}", if operators { "operators" } else { "names" })?;
        let mut table = Table::new(&["", "count", "total", "share"]);
        for named in &self.names {
            let (count, total) = (named.count.to_string(), time(named.total));
            table.row([short(&named.name), count, total, percent(named.share)]);
        }
        write!(f, "{table}")?;
        if let Some(batches) = &self.batches {
            writeln!(
                f,
                "\nbatches\n  {} of {:.1} texts on average (half at most {}, at most {}), of {:.1} requests",
                batches.count,
                batches.mean_rows,
                batches.p50_rows,
                batches.most_rows,
                batches.mean_requests
            )?;
            writeln!(
                f,
                "  {} tokens in {} positions: {} filled",
                batches.tokens,
                batches.positions,
                percent(batches.fill)
            )?;
        }
        if let Some(requests) = &self.requests {
            writeln!(
                f,
                "\nrequests\n  {} well, {} failed, {} cancelled; {:.1} a second; p50 {}, p99 {}",
                requests.well,
                requests.failed,
                requests.cancelled,
                requests.per_second,
                time(requests.times.p50),
                time(requests.times.p99)
            )?;
            let mut table = Table::new(&[
                "slowest", "at", "took", "texts", "tokenize", "queue", "batch", "other", "ended",
            ]);
            for row in &self.slowest_requests {
                table.row([
                    row.request.to_string(),
                    time(row.start),
                    time(row.seconds),
                    row.texts.to_string(),
                    time(row.tokenize),
                    time(row.queue),
                    time(row.batch),
                    time(row.other),
                    short(&row.ended),
                ]);
            }
            write!(f, "{table}")?;
        }
        match &self.critical_path {
            Some(path) => write!(f, "\n{path}"),
            None => Ok(()),
        }
    }
}

impl Display for CriticalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "critical path of {} ({})",
            short(&self.of),
            time(self.seconds)
        )?;
        let mut table = Table::default();
        lines(&mut table, &self.steps, self.seconds, self.seconds, 0);
        write!(f, "{table}")
    }
}

/// A line for each step, and those of its own beneath it. `all` is what they are part of, `whole` the
/// path's time.
fn lines(table: &mut Table, steps: &[Step], all: f64, whole: f64, level: usize) {
    let indent = "  ".repeat(level);
    let line = |table: &mut Table, name: &str, count: String, seconds: f64| {
        let share = if whole > 0.0 { seconds / whole } else { 0.0 };
        table.row([
            format!("{indent}{name}"),
            count,
            time(seconds),
            percent(share),
        ]);
    };
    for step in steps {
        let count = format!("× {}", step.count);
        line(table, &short(&step.name), count, step.seconds);
        lines(table, &step.steps, step.seconds, whole, level + 1);
    }
    let other = all - steps.iter().map(|step| step.seconds).sum::<f64>();
    if !steps.is_empty() && other > whole * 1e-3 {
        line(table, "(nothing of these)", String::new(), other);
    }
}

impl Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (which, summary) in [("before", self.before), ("after", self.after)] {
            writeln!(
                f,
                "{which}: {}, {} events in {}",
                plain(&summary.file),
                summary.events,
                time(summary.seconds)
            )?;
            for fault in &summary.faults {
                writeln!(f, "  note: {fault}")?;
            }
        }
        writeln!(f)?;
        let mut table = Table::new(&[
            "", "count", "", "mean", "", "change", "p50", "", "p99", "", "change",
        ]);
        for change in &self.stages {
            let of = |of: fn(&Times) -> String| {
                let cell = |times: Option<&Times>| times.map_or_else(|| "–".into(), of);
                [cell(change.before), cell(change.after)]
            };
            let [count, count_after] = of(|times| times.count.to_string());
            let [mean, mean_after] = of(|times| time(times.mean));
            let [p50, p50_after] = of(|times| time(times.p50));
            let [p99, p99_after] = of(|times| time(times.p99));
            table.row([
                short(change.name),
                count,
                count_after,
                mean,
                mean_after,
                ratio(change.mean_ratio),
                p50,
                p50_after,
                p99,
                p99_after,
                ratio(change.p99_ratio),
            ]);
        }
        write!(f, "{table}")?;
        if let (Some(before), Some(after)) = (&self.before.batches, &self.after.batches) {
            writeln!(
                f,
                "\nbatches: {:.1} → {:.1} texts, {} → {} filled",
                before.mean_rows,
                after.mean_rows,
                percent(before.fill),
                percent(after.fill)
            )?;
        }
        if let (Some(before), Some(after)) = (&self.before.requests, &self.after.requests) {
            writeln!(
                f,
                "requests: {:.1} → {:.1} a second",
                before.per_second, after.per_second
            )?;
        }
        Ok(())
    }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("× {ratio:.2}"))
}
