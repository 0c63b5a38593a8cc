//! Rows of text from arguments, standard input and files, one at a time.

mod csv;
mod jsonl;
mod lines;
pub(crate) mod passages;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use crate::args::{Embed, InputFormat};
use crate::error::{CliError, Result};

/// One row: its text, and what else the row held.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) text: String,
    /// The fields of a JSON object or CSV record, `text` among them; empty for plain lines.
    pub(crate) fields: Map<String, Value>,
}

impl Row {
    fn plain(text: String) -> Self {
        Self {
            text,
            fields: Map::new(),
        }
    }
}

/// Rows in order, read as they are asked for.
pub(crate) type Rows = Box<dyn Iterator<Item = Result<Row>>>;

/// All rows that the command line names: texts, then files.
pub(crate) fn rows(args: &Embed) -> Result<Rows> {
    let mut all: Rows = Box::new(std::iter::empty());
    for text in &args.texts {
        let next: Rows = if text == "-" {
            let format = args.input_format.unwrap_or(InputFormat::Lines);
            read(
                "standard input",
                BufReader::new(std::io::stdin()),
                format,
                &args.field,
            )
        } else {
            Box::new(std::iter::once(Ok(Row::plain(text.clone()))))
        };
        all = Box::new(all.chain(next));
    }
    for path in &args.files {
        let name = path.display().to_string();
        // Opened now, so that a wrong name fails before the model is loaded.
        let file = File::open(path).map_err(CliError::io(&name))?;
        let format = args.input_format.unwrap_or_else(|| by_ending(path));
        all = Box::new(all.chain(read(
            &name,
            BufReader::with_capacity(1 << 16, file),
            format,
            &args.field,
        )));
    }
    Ok(all)
}

/// How many rows there will be, where that is known without reading.
pub(crate) fn count(args: &Embed) -> Option<u64> {
    let known = args.files.is_empty() && args.texts.iter().all(|text| text != "-");
    known.then_some(args.texts.len() as u64)
}

fn read(name: &str, reader: impl BufRead + 'static, format: InputFormat, field: &str) -> Rows {
    let name = name.to_owned();
    match format {
        InputFormat::Lines => Box::new(lines::read(name, reader)),
        InputFormat::Jsonl => Box::new(jsonl::read(name, reader, field.to_owned())),
        InputFormat::Csv => Box::new(csv::read(name, reader, field.to_owned())),
    }
}

fn by_ending(path: &Path) -> InputFormat {
    match path
        .extension()
        .and_then(|ending| ending.to_str())
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        Some("jsonl" | "ndjson") => InputFormat::Jsonl,
        Some("csv") => InputFormat::Csv,
        _ => InputFormat::Lines,
    }
}
