//! One text a line; an empty line is an empty text.

use std::io::BufRead;
use std::sync::Arc;

use serde_json::Map;

use super::Row;
use crate::error::{CliError, Result};

/// What some programs put before UTF-8; it is no part of the text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Lines of UTF-8, without their ends (`\n` or `\r\n`).
pub(super) fn read(origin: Arc<str>, reader: impl BufRead) -> impl Iterator<Item = Result<Row>> {
    numbered(Arc::clone(&origin), reader).map(move |line| {
        line.map(|(number, text)| Row {
            text,
            fields: Map::new(),
            origin: Arc::clone(&origin),
            number,
        })
    })
}

/// Lines with their numbers, from 1.
pub(super) fn numbered(
    origin: Arc<str>,
    mut reader: impl BufRead,
) -> impl Iterator<Item = Result<(usize, String)>> {
    let mut row = 0;
    let mut failed = false;
    std::iter::from_fn(move || {
        if failed {
            return None;
        }
        row += 1;
        let line = next(&origin, &mut reader, row);
        failed = line.is_err();
        line.map(|text| text.map(|text| (row, text))).transpose()
    })
}

fn next(origin: &str, reader: &mut impl BufRead, row: usize) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    if reader
        .read_until(b'\n', &mut bytes)
        .map_err(CliError::io(origin))?
        == 0
    {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    let invalid = |error: std::string::FromUtf8Error| CliError::Row {
        name: origin.to_owned(),
        row,
        detail: format!(
            "is not UTF-8 ({}); convert the file first",
            error.utf8_error()
        ),
    };
    if row == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map(Some).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &'static [u8]) -> Vec<Result<String>> {
        read("test".into(), input)
            .map(|row| row.map(|row| row.text))
            .collect()
    }

    #[test]
    fn every_line_is_a_row() {
        let rows: Vec<String> = texts(b"a\n\n\r\nb c\r\n last")
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows, ["a", "", "", "b c", " last"]);
        assert!(texts(b"").is_empty());
        let marked: Vec<String> = texts(b"\xef\xbb\xbfa\n\xef\xbb\xbfb")
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(marked, ["a", "\u{feff}b"]);
    }

    #[test]
    fn a_line_that_is_no_text_is_named_and_ends_the_input() {
        let rows = texts(b"a\n\xff\xfe\nb");
        assert_eq!(rows.len(), 2);
        assert!(matches!(&rows[1], Err(CliError::Row { row: 2, .. })));
    }
}
