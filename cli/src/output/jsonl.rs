//! A JSON object a line.

use std::io::Write;

use isovec::Embedded;
use serde_json::Value;

use super::Sink;
use crate::error::{CliError, Result};
use crate::input::Row;

/// The row's own fields, or its text, and `embedding`; `truncated` where the model saw only a part.
pub(super) struct Jsonl<W> {
    writer: W,
    name: String,
}

impl<W: Write> Jsonl<W> {
    pub(super) fn new(writer: W, name: String) -> Self {
        Self { writer, name }
    }
}

impl<W: Write> Sink for Jsonl<W> {
    fn write(&mut self, row: Row, embedded: Embedded) -> Result<()> {
        let mut object = row.fields;
        if object.is_empty() {
            object.insert("text".into(), Value::String(row.text));
        }
        // The input may be an output of ours, with another model's mark.
        object.remove("truncated");
        if embedded.truncated {
            object.insert("truncated".into(), Value::Bool(true));
        }
        // As f32, whose shortest decimal form reads back as the same f32.
        let values = embedded
            .vector
            .iter()
            .map(|&value| serde_json::from_str(&value.to_string()).unwrap_or(Value::from(value)));
        object.insert("embedding".into(), values.collect());
        serde_json::to_writer(&mut self.writer, &object)
            .map_err(|error| CliError::io(&self.name)(error.into()))?;
        self.writer
            .write_all(b"\n")
            .map_err(CliError::io(&self.name))
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(CliError::io(&self.name))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
