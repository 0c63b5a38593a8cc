//! Gives fuzz targets access to the code that reads users' files.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use isovec_insight::trace;
use serde_json::{Map, Value};

use crate::args::InputFormat;
use crate::input;

/// A row's text and fields, or what is wrong with it.
pub type Row = Result<(String, Map<String, Value>), String>;

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A text a line.
    Lines,
    /// An object a line.
    Jsonl,
    /// Records with a header.
    Csv,
}

/// The rows of an input, with the text in the field `text`.
pub fn rows(reader: impl BufRead + Send + 'static, format: Format) -> impl Iterator<Item = Row> {
    let format = match format {
        Format::Lines => InputFormat::Lines,
        Format::Jsonl => InputFormat::Jsonl,
        Format::Csv => InputFormat::Csv,
    };
    let rows = input::read(Arc::from("input"), reader, format, "text");
    rows.map(|row| match row {
        Ok(row) => Ok((row.text, row.fields)),
        Err(error) => Err(error.to_string()),
    })
}

/// What `isovec trace` says of a trace, as JSON and as text, or why it is none. `open` is called for each time that it is read.
///
/// # Errors
/// What it says of a file that is none.
pub fn trace<R: Read>(open: impl Fn() -> io::Result<R>) -> Result<(Value, String), String> {
    let loaded = trace::load_all(open).map_err(|error| error.to_string())?;
    let summary = trace::Summary::new("trace".into(), &loaded, 5);
    let json = serde_json::to_value(&summary).map_err(|error| error.to_string())?;
    Ok((json, summary.to_string()))
}
