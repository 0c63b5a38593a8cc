//! Labels as a table for people, written as it is made: the columns are as wide as the model's longest label.

use std::io::Write;

use isovec::Classified;

use crate::error::{CliError, Result};
use crate::input::Row;
use crate::output::Sink;
use crate::output::start::start;

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
