//! JSON lines: the lines that begin in a range of bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_schema::FieldRef;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::rows::{BYTES, Chunk, Columns, Reader, Row, strings, texts, too_long};
use crate::store::Store;
use crate::unit::File;

/// Bytes that are read at a time to find the end of the last line.
pub(crate) const TAIL: u64 = 64 << 10;
/// Bytes of a line that are not its text: the other fields, and what JSON puts around them.
const BESIDE: u64 = 1 << 20;
/// JSON writes a byte in at most so many, as `\u0001`.
const ESCAPED: u64 = 6;

/// Reads the lines of a unit.
///
/// A line belongs to the unit in whose range it begins. So the ranges can be cut anywhere, without a look at the file. The reader
/// begins at the first line that begins in the range, and ends with the line that the range's end stands in.
pub(crate) struct JsonLines<'a> {
    columns: Columns<'a>,
    bytes: Vec<u8>,
    /// The place of `bytes` in the file.
    from: u64,
    /// The place of the next line in `bytes`.
    next: usize,
    /// The last line is longer than a line may be, and its end was not read.
    cut: bool,
}

impl<'a> JsonLines<'a> {
    /// Reads the range, and on to the end of its last line.
    pub(crate) fn open(
        store: &Store,
        file: &File,
        (start, end): (u64, u64),
        columns: Columns<'a>,
    ) -> Result<Self> {
        // The byte before the range says whether a line begins with it.
        let from = start.saturating_sub(1);
        let mut bytes = Vec::from(store.range(file, from..end)?);
        let next = match start {
            0 => 0,
            _ => newline(&bytes).map_or(bytes.len(), |at| at + 1),
        };
        let longest = columns
            .max_text_bytes
            .saturating_mul(ESCAPED)
            .saturating_add(BESIDE);
        let mut to = end;
        let mut cut = false;
        if next < bytes.len() && bytes.last() != Some(&b'\n') {
            while to < file.size && !cut {
                let more = store.range(file, to..file.size.min(to + TAIL))?;
                to += more.len() as u64;
                if let Some(at) = newline(&more) {
                    bytes.extend_from_slice(&more[..at]);
                    break;
                }
                bytes.extend_from_slice(&more);
                cut = to - end > longest;
            }
        }
        Ok(Self {
            columns,
            bytes,
            from,
            next,
            cut,
        })
    }

    /// The next line that is not blank, and its place in the file.
    fn line(&mut self) -> Option<(u64, std::ops::Range<usize>)> {
        while self.next < self.bytes.len() {
            let begins = self.next;
            let rest = &self.bytes[begins..];
            let ends = begins + newline(rest).unwrap_or(rest.len());
            self.next = ends + 1;
            if !self.bytes[begins..ends].trim_ascii().is_empty() {
                return Some((self.from + begins as u64, begins..ends));
            }
        }
        None
    }

    fn row(&self, line: &[u8], last: bool) -> Result<(String, Map<String, Value>), Poison> {
        if last && self.cut {
            return Err("the line is longer than its text may be".to_owned().into());
        }
        let line = std::str::from_utf8(line).map_err(|error| {
            let at = error.valid_up_to();
            format!("the line is not UTF-8 from its byte {at} on")
        })?;
        let mut fields: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| format!("the line is not a JSON object: {error}"))?;
        let name = self.columns.text;
        let reason = match fields.get_mut(name) {
            Some(Value::String(text)) => match too_long(text.len(), self.columns.max_text_bytes) {
                None => return Ok((std::mem::take(text), fields)),
                Some(reason) => reason,
            },
            Some(Value::Null) => format!("the field {name:?} is null"),
            Some(_) => format!("the field {name:?} is not a string"),
            None => format!("there is no field {name:?}"),
        };
        Err(Poison { reason, fields })
    }
}

/// Why a line has no text, and the fields that it has.
struct Poison {
    reason: String,
    fields: Map<String, Value>,
}

impl From<String> for Poison {
    fn from(reason: String) -> Self {
        let fields = Map::new();
        Self { reason, fields }
    }
}

impl Reader for JsonLines<'_> {
    fn fields(&self) -> Vec<FieldRef> {
        self.columns.keep.iter().map(|name| strings(name)).collect()
    }

    fn next(&mut self) -> Result<Option<Chunk>> {
        let mut rows = Vec::new();
        let mut kept: Vec<Vec<Option<String>>> = vec![Vec::new(); self.columns.keep.len()];
        let mut bytes = 0;
        while rows.len() < self.columns.rows && bytes < BYTES {
            let Some((at, line)) = self.line() else { break };
            let last = line.end == self.bytes.len();
            bytes += line.len();
            let (text, mut fields) = match self.row(&self.bytes[line], last) {
                Ok((text, fields)) => (Ok(text), fields),
                Err(Poison { reason, fields }) => (Err(reason), fields),
            };
            for (name, column) in self.columns.keep.iter().zip(&mut kept) {
                column.push(fields.get_mut(name).and_then(string));
            }
            rows.push(Row { text, at });
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let kept = self.columns.keep.iter().zip(kept).map(|(name, column)| {
            // The text was taken out of the fields.
            if name == self.columns.text {
                return texts(&rows);
            }
            Arc::new(StringArray::from(column)) as ArrayRef
        });
        let kept = kept.collect();
        Ok(Some(Chunk { rows, kept }))
    }

    fn counts(&self) -> &'static str {
        "byte"
    }
}

/// A value as a column has it: a string as it is, anything else as JSON.
fn string(value: &mut Value) -> Option<String> {
    match value.take() {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

fn newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::input::Input;
    use crate::spec::Spec;
    use arrow_array::Array as _;

    /// The rows of every unit when a file is cut after every `step` bytes.
    fn rows(content: &[u8], step: u64, max_text_bytes: u64) -> Vec<(Row, Option<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        std::fs::write(&path, content).unwrap();
        let spec = Spec::parse("input = ''\noutput = ''").unwrap();
        let context = Context::new(&spec, Arc::new(())).unwrap();
        let input = Input::list(path.to_str().unwrap(), &context).unwrap();
        let file = &input.files[0];
        let keep = ["id".to_owned()];
        let columns = Columns {
            text: "text",
            keep: &keep,
            max_text_bytes,
            rows: 3,
        };
        let mut all = Vec::new();
        for start in (0..file.size).step_by(step as usize) {
            let range = (start, file.size.min(start + step));
            let mut reader = JsonLines::open(&input.store, file, range, columns).unwrap();
            while let Some(chunk) = reader.next().unwrap() {
                assert!(chunk.rows.len() <= 3);
                let ids = chunk.kept[0]
                    .as_any()
                    .downcast_ref::<StringArray>()
                    .unwrap();
                let ids = ids.iter().map(|id| id.map(str::to_owned));
                all.extend(chunk.rows.into_iter().zip(ids));
            }
        }
        all
    }

    #[test]
    fn wherever_a_file_is_cut_every_line_is_read_once() {
        let content = b"{\"id\":1,\"text\":\"a\"}\r\n\n{\"text\":\"\\u00e9\",\"id\":\"x\"}\n{\"id\":[1],\"text\":\"c\"}";
        let whole = rows(content, 1000, 9);
        let texts: Vec<_> = whole
            .iter()
            .map(|(row, _)| row.text.clone().unwrap())
            .collect();
        assert_eq!(texts, ["a", "é", "c"]);
        let ids: Vec<_> = whole.iter().map(|(_, id)| id.as_deref().unwrap()).collect();
        assert_eq!(ids, ["1", "x", "[1]"]);
        let at: Vec<_> = whole.iter().map(|(row, _)| row.at).collect();
        assert_eq!(at, [0, 22, 49]);
        for step in 1..content.len() as u64 {
            assert_eq!(rows(content, step, 9), whole, "{step}");
        }
    }

    #[test]
    fn what_is_no_text_says_why_and_keeps_the_other_rows() {
        let content = b"{\"text\":null,\"id\":4}\n{\"id\":5}\n{\"text\":7}\n[1]\n{\"text\":\"\xff\"}\n{\"text\":\"123456789\"}\n{\"text\":\"b\",\"id\":6}\n";
        let rows = rows(content, 1000, 8);
        let reasons = [
            "is null",
            "no field \"text\"",
            "not a string",
            "not a JSON object",
            "not UTF-8",
            "9 bytes",
        ];
        for ((row, _), reason) in rows.iter().zip(reasons) {
            let said = row.text.as_ref().unwrap_err();
            assert!(said.contains(reason), "{said}");
        }
        let ids: Vec<_> = rows.iter().map(|(_, id)| id.as_deref()).collect();
        let expected = [Some("4"), Some("5"), None, None, None, None, Some("6")];
        assert_eq!(ids, expected);
        assert_eq!(rows[6].0.text.as_deref(), Ok("b"));
    }

    #[test]
    fn a_line_without_an_end_is_not_read_to_its_end() {
        let long = "x".repeat(4 << 20);
        let content = format!("{{\"text\":\"{long}\"}}\n{{\"text\":\"b\"}}\n");
        let rows = rows(content.as_bytes(), 1 << 20, 8);
        let texts: Vec<_> = rows.iter().map(|(row, _)| row.text.clone()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].is_err());
        assert_eq!(texts[1], Ok("b".into()));
    }
}
