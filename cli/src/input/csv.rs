//! CSV with a header, the text in a named column.

use std::io::Read;
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
    let mut records = ::csv::Reader::from_reader(reader);
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
