//! Vectors as a JSON object a line.

use std::io::Write;

use isovec::Embedded;

use super::Sink;
use super::objects::{Frame, Objects, decimal};
use crate::error::Result;
use crate::input::Row;

/// What a row's object is, and `embedding`.
pub(super) struct Jsonl<W>(Objects<W>);

impl<W: Write> Jsonl<W> {
    pub(super) fn new(writer: W, name: String) -> Self {
        Self(Objects::new(writer, name, Frame::Lines))
    }
}

impl<W: Write> Sink<Embedded> for Jsonl<W> {
    fn write(&mut self, row: Row, embedded: Embedded) -> Result<()> {
        let values = embedded.vector.into_iter().map(decimal).collect();
        self.0.put(row, embedded.truncated, "embedding", values)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish()
    }
}
