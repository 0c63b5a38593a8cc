//! Rows of text from arguments, standard input and files, one at a time.

mod csv;
pub(crate) mod feed;
#[cfg(feature = "image")]
pub(crate) mod images;
mod jsonl;
mod lines;
pub(crate) mod passages;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::args::{InputArgs, InputFormat};
use crate::error::{CliError, Result};

/// One row: its text, what else it held, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) text: String,
    /// The fields of a JSON object or CSV record, `text` among them; empty for plain lines.
    pub(crate) fields: Map<String, Value>,
    /// The file, or what else it came from.
    pub(crate) origin: Arc<str>,
    /// Its number there, from 1.
    pub(crate) number: usize,
}

/// A row's text and all its fields.
type Parsed = (String, Map<String, Value>);

/// Rows in order, read as they are asked for.
pub(crate) type Rows = Box<dyn Iterator<Item = Result<Row>> + Send>;

/// Texts that measuring and looking read: more do not change the figures.
const SOME: usize = 10_000;

/// The first texts that the command line names, at least one.
pub(crate) fn some(args: &InputArgs) -> Result<Vec<String>> {
    let rows = open(args)?.rows.take(SOME);
    let texts: Vec<String> = rows.map(|row| Ok(row?.text)).collect::<Result<_>>()?;
    if texts.is_empty() {
        return Err(CliError::Usage(
            "there is no text to measure with; name a file of yours with --file".into(),
        ));
    }
    Ok(texts)
}

/// All rows that the command line names: texts, then files.
pub(crate) struct Input {
    pub(crate) rows: Rows,
    /// Whether the next row may have to be waited for: it comes through a pipe or from a terminal.
    pub(crate) waits: bool,
}

/// Opens what the command line names.
pub(crate) fn open(args: &InputArgs) -> Result<Input> {
    let mut all: Vec<Rows> = Vec::new();
    let mut waits = false;
    let origin: Arc<str> = "the command line".into();
    for (number, text) in (1..).zip(&args.texts) {
        let next: Rows = if text == "-" {
            waits = true;
            let format = args.input_format.unwrap_or(InputFormat::Lines);
            read(
                "standard input".into(),
                BufReader::new(std::io::stdin()),
                format,
                &args.field,
            )
        } else {
            Box::new(std::iter::once(Ok(Row {
                text: text.clone(),
                fields: Map::new(),
                origin: Arc::clone(&origin),
                number,
            })))
        };
        all.push(next);
    }
    for path in &args.files {
        let name = path.display().to_string();
        // Opened now, so that a wrong name fails before the model is loaded.
        let file = File::open(path).map_err(CliError::io(&name))?;
        waits |= !file
            .metadata()
            .map_err(CliError::io(&name))?
            .file_type()
            .is_file();
        let format = args.input_format.unwrap_or_else(|| by_ending(path));
        all.push(read(
            name.into(),
            BufReader::with_capacity(1 << 16, file),
            format,
            &args.field,
        ));
    }
    // One after another, and not one within another: a command line has room for 100,000 texts.
    let rows = Box::new(all.into_iter().flatten());
    Ok(Input { rows, waits })
}

/// Refuses a file to write to that is read: what is written would take its place.
pub(crate) fn not_read(args: &InputArgs, written: &Path) -> Result<()> {
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    let Some(own) = whole(written) else {
        return Ok(());
    };
    let mut files = args.files.iter();
    match files.find(|file| whole(file).as_ref() == Some(&own)) {
        Some(file) => Err(CliError::Usage(format!(
            "{} is read and would be overwritten; name another file to write to",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// How many rows there will be, where that is known without reading.
pub(crate) fn count(args: &InputArgs) -> Option<u64> {
    let known = args.files.is_empty() && args.texts.iter().all(|text| text != "-");
    known.then_some(args.texts.len() as u64)
}

/// The files under a folder in the order of their paths, without those that .gitignore names.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let walk = ignore::WalkBuilder::new(folder)
        .sort_by_file_path(Path::cmp)
        .build();
    let mut files = Vec::new();
    for entry in walk {
        let entry = entry.map_err(|error| CliError::Io {
            name: folder.display().to_string(),
            source: error
                .into_io_error()
                .unwrap_or_else(|| std::io::Error::other("cannot be walked")),
        })?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

pub(crate) fn read(
    origin: Arc<str>,
    reader: impl BufRead + Send + 'static,
    format: InputFormat,
    field: &str,
) -> Rows {
    match format {
        InputFormat::Lines => Box::new(lines::read(origin, reader)),
        InputFormat::Jsonl => Box::new(jsonl::read(origin, reader, field.to_owned())),
        InputFormat::Csv => Box::new(csv::read(origin, reader, field.to_owned())),
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
