//! The output for the user: announcements, a spinner on a terminal only, and the summary.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Announces a step and what it does.
pub(crate) fn step(number: usize, of: usize, name: &str, what: &str) {
    println!("\n[{number}/{of}] {name}: {what}");
}

/// A word under a step.
pub(crate) fn word(text: &str) {
    println!("      {text}");
}

/// The command that runs now, as it could be typed.
pub(crate) fn command(shown: &str) {
    println!("      $ {shown}");
}

/// Another program's output, set off from ours.
pub(crate) fn quote(text: &str) {
    for line in text.lines() {
        eprintln!("      | {line}");
    }
}

/// Shows that something runs: a spinner with the time on a terminal, one plain line elsewhere.
pub(crate) fn waiting(shown: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        command(shown);
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("      {spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_message(shown.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// How one check ended.
pub(crate) enum Outcome {
    /// It ran and found nothing wrong.
    Passed,
    /// It cannot run on this machine, and says why.
    Skipped(String),
    /// It ran and found something, or could not run though it should.
    Failed(String),
}

impl Outcome {
    /// The word of the summary, and the reason.
    pub(crate) fn words(&self) -> (&'static str, &str) {
        match self {
            Self::Passed => ("passed", ""),
            Self::Skipped(reason) => ("skipped", reason),
            Self::Failed(reason) => ("FAILED", reason),
        }
    }

    /// The outcome that these words say; whatever is unknown is a failure.
    pub(crate) fn of_words(word: &str, reason: String) -> Self {
        match word {
            "passed" => Self::Passed,
            "skipped" => Self::Skipped(reason),
            _ => Self::Failed(reason),
        }
    }
}

/// One line of the summary.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

/// The table of all checks. Its last line is `N passed, N failed` and nothing else.
pub(crate) fn summary(lines: &[Line]) -> String {
    let width = lines.iter().map(|l| l.name.len()).max().unwrap_or(0);
    let mut text = String::from("\n");
    for line in lines {
        let (word, reason) = line.outcome.words();
        let row = format!(
            "{:width$}  {word:7}  {:>7.1} s  {}",
            line.name,
            line.took.as_secs_f64(),
            reason.replace('\n', " ")
        );
        text.push_str(row.trim_end());
        text.push('\n');
    }
    let count = |wanted: fn(&Outcome) -> bool| lines.iter().filter(|l| wanted(&l.outcome)).count();
    let passed = count(|o| matches!(o, Outcome::Passed));
    let failed = count(|o| matches!(o, Outcome::Failed(_)));
    text.push_str(&format!("\n{passed} passed, {failed} failed"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_ends_with_the_count_alone() {
        let line = |name, outcome| Line {
            name,
            outcome,
            took: Duration::from_millis(1500),
        };
        let text = summary(&[
            line("format", Outcome::Passed),
            line(
                "native",
                Outcome::Failed("`cargo test` failed\nhere".into()),
            ),
            line("cross", Outcome::Skipped("no std".into())),
        ]);
        assert_eq!(text.lines().last(), Some("1 passed, 1 failed"));
        assert!(text.contains("FAILED") && text.contains("`cargo test` failed here"));
        assert!(text.contains("skipped") && text.contains("no std"));
        assert_eq!(summary(&[]).lines().last(), Some("0 passed, 0 failed"));
    }
}
