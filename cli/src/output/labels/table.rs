//! Labels as a table for people, written as it is made: the columns are as wide as the model's longest label.

use std::io::Write;

use isovec::Classified;

use crate::error::{CliError, Result};
use crate::input::Row;
use crate::output::Sink;

/// Characters of a text that are shown.
const SHOWN: usize = 60;
/// Characters of a score: a sign, digits before the point, four behind it.
const SCORE: usize = 9;

/// A line for each label that is shown; the text stands beside its first one.
pub(super) struct Table<W> {
    writer: W,
    name: String,
    width: usize,
    most: usize,
}

impl<W: Write> Table<W> {
    pub(super) fn new(
        writer: W,
        name: String,
        labels: &[String],
        most: Option<usize>,
    ) -> Result<Self> {
        const HEAD: &str = "label";
        let widths = labels.iter().map(|label| label.chars().count());
        let mut table = Self {
            writer,
            name,
            width: widths.fold(HEAD.len(), usize::max),
            most: most.unwrap_or(1),
        };
        table.line(HEAD, "score", "text")?;
        Ok(table)
    }

    fn line(&mut self, label: &str, score: &str, text: &str) -> Result<()> {
        let line = format!(
            "{label:<width$}  {score:>SCORE$}  {text}",
            width = self.width
        );
        writeln!(self.writer, "{}", line.trim_end()).map_err(CliError::io(&self.name))
    }
}

impl<W: Write> Sink<Classified> for Table<W> {
    fn write(&mut self, row: Row, classified: Classified) -> Result<()> {
        let mut text = start(&row.text);
        for label in classified.labels.iter().take(self.most) {
            self.line(&label.label, &format!("{:.4}", label.score), &text)?;
            text.clear();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(CliError::io(&self.name))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

/// The beginning of a text, on one line: what would move a terminal's cursor is a space.
fn start(text: &str) -> String {
    let mut shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut start: String = shown.by_ref().take(SHOWN).collect();
    if shown.next().is_some() {
        start.push('…');
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_bounded_length() {
        assert_eq!(start("a\tb\nc\u{1b}[2J"), "a b c [2J");
        assert_eq!(start(&"ä".repeat(SHOWN)), "ä".repeat(SHOWN));
        let long = start(&"ä".repeat(SHOWN + 1));
        assert_eq!(long, format!("{}…", "ä".repeat(SHOWN)));
    }
}
