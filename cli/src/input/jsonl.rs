//! JSON objects, one a line, with the text in a named field.

use std::io::BufRead;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Parsed, Row, lines};
use crate::error::{CliError, Result};

/// One row a line; blank lines are refused, since a row without an object has no place to go.
pub(super) fn read(
    origin: Arc<str>,
    reader: impl BufRead,
    field: String,
) -> impl Iterator<Item = Result<Row>> {
    lines::numbered(Arc::clone(&origin), reader).map(move |line| {
        let (number, line) = line?;
        match parse(&line, &field) {
            Ok((text, fields)) => Ok(Row {
                text,
                fields,
                origin: Arc::clone(&origin),
                number,
            }),
            Err(detail) => Err(CliError::Row {
                name: origin.to_string(),
                row: number,
                detail,
            }),
        }
    })
}

fn parse(line: &str, field: &str) -> Result<Parsed, String> {
    let fields: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("is not a JSON object: {error}"))?;
    match fields.get(field) {
        Some(Value::String(text)) => Ok((text.clone(), fields)),
        Some(_) => Err(format!("the field {field:?} is not a string")),
        None => {
            let names: Vec<&String> = fields.keys().collect();
            Err(format!(
                "has no field {field:?} but {names:?}; name one with --field"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_field_is_the_text_and_the_rest_is_kept() {
        let input = b"{\"id\":1,\"body\":\"a\"}\n{\"id\":2,\"body\":\"\"}\n{\"id\":3}\n";
        let rows: Vec<_> = read("test".into(), &input[..], "body".into()).collect();
        let first = rows[0].as_ref().unwrap();
        assert_eq!(
            (first.text.as_str(), &first.fields["id"]),
            ("a", &Value::from(1))
        );
        assert_eq!(rows[1].as_ref().unwrap().text, "");
        assert!(matches!(&rows[2], Err(CliError::Row { row: 3, .. })));
    }
}
