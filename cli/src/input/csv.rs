//! CSV with a header, the text in a named column.

use std::io::{self, Read};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Parsed, Row};
use crate::error::{CliError, Result};

/// One row a record.
pub(super) fn read(
    origin: Arc<str>,
    reader: impl Read,
    field: String,
) -> impl Iterator<Item = Result<Row>> {
    let mut records = ::csv::Reader::from_reader(Together::new(reader));
    let mut header: Option<(Vec<String>, usize)> = None;
    let mut number = 0;
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed {
            return None;
        }
        number += 1;
        let result = next(&mut records, &mut header, &field);
        failed = result.is_err();
        match result {
            Ok(None) => None,
            Ok(Some((text, fields))) => Some(Ok(Row {
                text,
                fields,
                origin: Arc::clone(&origin),
                number,
            })),
            Err(detail) => Some(Err(CliError::Row {
                name: origin.to_string(),
                row: number,
                detail,
            })),
        }
    })
}

/// The mark that some programs put before UTF-8, which the crate looks for in what it reads first, and a byte more: were there
/// nothing behind the mark, it would take that for the end.
const FIRST: usize = "\u{feff}".len() + 1;

/// Hands out the first bytes at once, however few of them the source gives at a time.
struct Together<R> {
    source: R,
    first: Option<Vec<u8>>,
}

impl<R> Together<R> {
    fn new(source: R) -> Self {
        let first = Some(Vec::new());
        Self { source, first }
    }
}

impl<R: Read> Read for Together<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(first) = self.first.as_mut().filter(|_| into.len() >= FIRST) else {
            return self.source.read(into);
        };
        let missing = (FIRST - first.len()) as u64;
        self.source.by_ref().take(missing).read_to_end(first)?;
        into[..first.len()].copy_from_slice(first);
        let length = first.len();
        self.first = None;
        Ok(length)
    }
}

/// The next record.
fn next<R: Read>(
    records: &mut ::csv::Reader<R>,
    header: &mut Option<(Vec<String>, usize)>,
    field: &str,
) -> Result<Option<Parsed>, String> {
    if header.is_none() {
        let names: Vec<String> = records
            .headers()
            .map_err(|error| error.to_string())?
            .iter()
            .map(str::to_owned)
            .collect();
        let column = names.iter().position(|name| name == field);
        let column = column.ok_or_else(|| {
            format!("has no column {field:?} but {names:?}; name one with --field")
        })?;
        *header = Some((names, column));
    }
    let Some((names, column)) = header else {
        return Ok(None);
    };
    let mut record = ::csv::StringRecord::new();
    if !records
        .read_record(&mut record)
        .map_err(|error| error.to_string())?
    {
        return Ok(None);
    }
    let text = record.get(*column).unwrap_or_default().to_owned();
    let fields: Map<String, Value> = names
        .iter()
        .zip(&record)
        .map(|(name, value)| (name.clone(), Value::from(value)))
        .collect();
    Ok(Some((text, fields)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_may_hold_anything() {
        let input = b"id,text\n1,\"a, \"\"b\"\"\nc\"\n2,\n";
        let rows: Vec<Row> = read("test".into(), &input[..], "text".into())
            .map(Result::unwrap)
            .collect();
        assert_eq!(
            rows.iter().map(|row| row.text.as_str()).collect::<Vec<_>>(),
            ["a, \"b\"\nc", ""]
        );
        assert_eq!(rows[1].fields["id"], Value::from("2"));
    }

    #[test]
    fn a_mark_is_no_part_of_the_first_name_even_in_pieces() {
        let input = "\u{feff}text\nä\n".as_bytes();
        let pieces = input.iter().map(std::slice::from_ref);
        let bytewise = pieces.fold(Box::new(io::empty()) as Box<dyn Read>, |before, piece| {
            Box::new(before.chain(piece))
        });
        for reader in [Box::new(input) as Box<dyn Read>, bytewise] {
            let rows: Vec<Row> = read("test".into(), reader, "text".into())
                .map(Result::unwrap)
                .collect();
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].text, "ä");
        }
        for short in ["", "a", "ab"] {
            let rows: Vec<_> = read("test".into(), short.as_bytes(), "text".into()).collect();
            assert!(
                matches!(&rows[..], [Err(CliError::Row { row: 1, .. })]),
                "{short:?}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let no_column: Vec<_> = read("test".into(), &b"id\n1\n"[..], "text".into()).collect();
        assert!(
            matches!(&no_column[..], [Err(CliError::Row { detail, .. })] if detail.contains("--field"))
        );
        let ragged: Vec<_> =
            read("test".into(), &b"id,text\n1,a\n2\n"[..], "text".into()).collect();
        assert!(ragged[0].is_ok() && matches!(&ragged[1], Err(CliError::Row { row: 2, .. })));
    }
}
