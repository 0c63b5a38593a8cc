//! Labels as CSV records (RFC 4180): `text`, `label`, `score`, `truncated`.

use std::io::{self, Write};

use isovec::Classified;

use crate::error::{CliError, Result};
use crate::input::Row;
use crate::output::Sink;

/// A record for each text and label, the highest score first.
pub(super) struct Records<W: Write> {
    writer: csv::Writer<W>,
    name: String,
    most: usize,
}

impl<W: Write> Records<W> {
    pub(super) fn new(writer: W, name: String, most: Option<usize>) -> Result<Self> {
        let mut records = Self {
            writer: csv::Writer::from_writer(writer),
            name,
            most: most.unwrap_or(1),
        };
        records.put(["text", "label", "score", "truncated"])?;
        Ok(records)
    }

    fn put(&mut self, record: [&str; 4]) -> Result<()> {
        let written = self.writer.write_record(record);
        written.map_err(|error| CliError::io(&self.name)(io::Error::from(error)))
    }
}

impl<W: Write> Sink<Classified> for Records<W> {
    fn write(&mut self, row: Row, classified: Classified) -> Result<()> {
        let truncated = classified.truncated.to_string();
        for label in classified.labels.iter().take(self.most) {
            self.put([
                &row.text,
                &label.label,
                &label.score.to_string(),
                &truncated,
            ])?;
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
