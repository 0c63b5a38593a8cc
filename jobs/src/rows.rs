//! Rows, a chunk at a time.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field, FieldRef};

use crate::error::Result;

/// Rows of a chunk, at most: what is embedded together.
pub(crate) const ROWS: usize = 4096;
/// Bytes of texts that a column's offsets can count: they have 32 bits.
pub(crate) const COLUMN: u64 = i32::MAX as u64;
/// Bytes of JSON lines that are enough for a chunk, too.
pub(crate) const BYTES: usize = 32 << 20;

/// A row of the input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The text, or why there is none.
    pub(crate) text: Result<String, String>,
    /// Where it stands in its file, from 0: the first byte of its line, or the number of its row.
    pub(crate) at: u64,
}

/// Some rows, and the columns that are kept of them.
pub(crate) struct Chunk {
    pub(crate) rows: Vec<Row>,
    /// As the spec names them.
    pub(crate) kept: Vec<ArrayRef>,
}

/// Gives the rows of a unit in their order.
pub(crate) trait Reader {
    /// The columns that are kept.
    fn fields(&self) -> Vec<FieldRef>;

    /// The next rows; nothing at the end.
    fn next(&mut self) -> Result<Option<Chunk>>;

    /// What `at` of a row counts, for messages and side files.
    fn counts(&self) -> &'static str;
}

/// A column of texts that may be absent.
pub(crate) fn strings(name: &str) -> FieldRef {
    Arc::new(Field::new(name, DataType::Utf8, true))
}

/// Bytes of all texts.
pub(crate) fn bytes(rows: &[Row]) -> u64 {
    let texts = rows.iter().filter_map(|row| row.text.as_ref().ok());
    texts.map(|text| text.len() as u64).sum()
}

/// The texts as a column; together they have [`COLUMN`] bytes at most.
pub(crate) fn texts(rows: &[Row]) -> ArrayRef {
    let texts = rows.iter().map(|row| row.text.as_deref().ok());
    Arc::new(texts.collect::<StringArray>())
}

/// Whether a text is longer than may be.
pub(crate) fn too_long(bytes: usize, most: u64) -> Option<String> {
    (bytes as u64 > most)
        .then(|| format!("the text has {bytes} bytes, more than max_text_bytes ({most})"))
}

/// What a unit's reader is told.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub(crate) text: &'a str,
    pub(crate) keep: &'a [String],
    pub(crate) max_text_bytes: u64,
    /// Rows of a chunk, at most.
    pub(crate) rows: usize,
}
