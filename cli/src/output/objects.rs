//! A JSON object for each row, with the row's own fields in it.

use std::io::Write;

use serde_json::Value;

use crate::error::{CliError, Result};
use crate::input::Row;

/// How objects stand beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// One a line.
    Lines,
    /// As one array, an object a line of it.
    Array,
}

/// Writes objects as they come.
pub(super) struct Objects<W> {
    writer: W,
    name: String,
    frame: Frame,
    begun: bool,
}

impl<W: Write> Objects<W> {
    pub(super) fn new(writer: W, name: String, frame: Frame) -> Self {
        Self {
            writer,
            name,
            frame,
            begun: false,
        }
    }

    /// The row's own fields, or its text, and `value` under `key`; `truncated` where the model saw only a part.
    pub(super) fn put(&mut self, row: Row, truncated: bool, key: &str, value: Value) -> Result<()> {
        let mut object = row.fields;
        if object.is_empty() {
            object.insert("text".into(), Value::String(row.text));
        }
        // The input may be an output of ours, with another model's mark.
        object.remove("truncated");
        if truncated {
            object.insert("truncated".into(), Value::Bool(true));
        }
        object.insert(key.into(), value);
        let before: &[u8] = match (self.frame, self.begun) {
            (Frame::Lines, _) => b"",
            (Frame::Array, false) => b"[\n",
            (Frame::Array, true) => b",\n",
        };
        self.begun = true;
        let writer = &mut self.writer;
        let mut write = || {
            writer.write_all(before)?;
            serde_json::to_writer(&mut *writer, &object)?;
            match self.frame {
                Frame::Lines => writer.write_all(b"\n"),
                Frame::Array => Ok(()),
            }
        };
        write().map_err(CliError::io(&self.name))
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(CliError::io(&self.name))
    }

    pub(super) fn finish(&mut self) -> Result<()> {
        let end: &[u8] = match (self.frame, self.begun) {
            (Frame::Lines, _) => b"",
            (Frame::Array, false) => b"[]\n",
            (Frame::Array, true) => b"\n]\n",
        };
        self.writer
            .write_all(end)
            .map_err(CliError::io(&self.name))?;
        self.flush()
    }
}

/// A number as f32, whose shortest decimal form reads back as the same f32.
pub(super) fn decimal(value: f32) -> Value {
    serde_json::from_str(&value.to_string()).unwrap_or(Value::from(value))
}
