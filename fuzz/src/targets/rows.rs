//! Rows of texts (plain lines, JSON objects a line, CSV) as the program reads them, against plain splitting, `serde_json` and the
//! crate `csv` on the whole input; and the same rows whether the input comes at once or byte by byte.

use std::io::{BufReader, Cursor, Read};

use isovec_cli::reading::{Format, Row, rows};
use serde_json::{Map, Value};

use crate::bounds::ours;

/// Tries one input: its first byte says how the rest is written.
pub fn run(data: &[u8]) {
    let Some((&first, input)) = data.split_first() else {
        return;
    };
    let format = [Format::Lines, Format::Jsonl, Format::Csv][usize::from(first) % 3];
    let whole = read(input, format, usize::MAX);
    let expected = match format {
        Format::Lines => lines(input)
            .map(|line| line.map(|text| (text, Map::new())))
            .collect(),
        Format::Jsonl => objects(input),
        Format::Csv => records(input),
    };
    assert_eq!(whole, expected, "{format:?}");
    assert_eq!(read(input, format, 1), whole, "{format:?}, byte by byte");
}

/// A row, or nothing where it is refused, which ends the input: the program stops there.
type Told = Option<(String, Map<String, Value>)>;

fn read(input: &[u8], format: Format, piece: usize) -> Vec<Told> {
    let input = input.to_vec();
    let length = input.len();
    ours(length, || {
        let reader = BufReader::with_capacity(64, Pieces(Cursor::new(input), piece));
        until_refused(rows(reader, format).map(Row::ok))
    })
}

fn until_refused(rows: impl Iterator<Item = Told>) -> Vec<Told> {
    let mut told = Vec::new();
    for row in rows {
        let refused = row.is_none();
        told.push(row);
        if refused {
            break;
        }
    }
    told
}

/// Gives so many bytes at a time.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(self.1);
        self.0.read(&mut into[..most])
    }
}

/// Lines without their ends, of which only the last may have none.
fn lines(input: &[u8]) -> impl Iterator<Item = Option<String>> {
    let mut lines: Vec<&[u8]> = input.split(|&byte| byte == b'\n').collect();
    let last = lines.pop().filter(|last| !last.is_empty());
    let ended = lines
        .into_iter()
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut all: Vec<&[u8]> = ended.chain(last).collect();
    if let Some(first) = all.first_mut() {
        *first = first.strip_prefix("\u{feff}".as_bytes()).unwrap_or(first);
    }
    let texts: Vec<Option<String>> = all
        .into_iter()
        .map(|line| std::str::from_utf8(line).ok().map(str::to_owned))
        .collect();
    let end = texts
        .iter()
        .position(Option::is_none)
        .map_or(texts.len(), |at| at + 1);
    texts.into_iter().take(end)
}

fn objects(input: &[u8]) -> Vec<Told> {
    until_refused(lines(input).map(|line| {
        let Value::Object(fields) = serde_json::from_str(&line?).ok()? else {
            return None;
        };
        let text = fields.get("text")?.as_str()?.to_owned();
        Some((text, fields))
    }))
}

fn records(input: &[u8]) -> Vec<Told> {
    let mut reader = csv::ReaderBuilder::new().from_reader(input);
    let names = match reader.headers() {
        Ok(names) => names.clone(),
        Err(_) => return vec![None],
    };
    let Some(column) = names.iter().position(|name| name == "text") else {
        return vec![None];
    };
    until_refused(reader.into_records().map(|record| {
        let record = record.ok()?;
        let fields = names.iter().zip(&record);
        let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
        Some((record[column].to_owned(), fields.collect()))
    }))
}
