//! Texts out of arrays of every form that DataFusion has for them.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ReturnFieldArgs;

use crate::error::{Result, arguments, wrong_type};

/// What a function wants where it wants a text.
const WANTED: &str = "a text (Utf8, LargeUtf8, Utf8View, or a dictionary of them)";

/// Refuses an argument that is no text.
pub(crate) fn check(
    function: &str,
    usage: &'static str,
    args: &ReturnFieldArgs<'_>,
    place: usize,
) -> Result<()> {
    let got = args.arg_fields[place].data_type();
    match is_text(got) {
        true => Ok(()),
        false => Err(wrong_type(function, usage, place, WANTED, got)),
    }
}

/// Refuses a wrong number of arguments.
pub(crate) fn check_count(
    function: &str,
    usage: &'static str,
    got: usize,
    least: usize,
    most: usize,
) -> Result<()> {
    match (least..=most).contains(&got) {
        true => Ok(()),
        false => {
            let problem = format!("{got} arguments, and {least} to {most} are wanted");
            Err(arguments(function, usage, problem))
        }
    }
}

/// The literal text of an argument, if it is there: a model's name or a metric, which decide about a query's types.
pub(crate) fn literal<'a>(
    function: &str,
    usage: &'static str,
    args: &ReturnFieldArgs<'a>,
    place: usize,
) -> Result<Option<&'a str>> {
    let Some(argument) = args.scalar_arguments.get(place) else {
        return Ok(None);
    };
    let text = argument.and_then(|value| value.try_as_str().flatten());
    let problem = || {
        format!(
            "argument {} is no text that the query itself has",
            place + 1
        )
    };
    text.map(Some)
        .ok_or_else(|| arguments(function, usage, problem()))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// The texts of an array, row by row.
///
/// # Errors
/// An internal error for an array that is no text, which [`check`] has refused.
pub(crate) fn rows(array: &ArrayRef) -> Result<Vec<Option<&str>>, DataFusionError> {
    Ok(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        DataType::Null => vec![None; array.len()],
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = rows(dictionary.values())?;
            if values.is_empty() {
                // It has no keys but nulls, and `normalized_keys` panics.
                return Ok(vec![None; array.len()]);
            }
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            keys.map(|(row, key)| {
                values
                    .get(key)
                    .filter(|_| dictionary.is_valid(row))
                    .copied()?
            })
            .collect()
        }
        other => {
            return Err(DataFusionError::Internal(format!(
                "a text was planned, and {other} came"
            )));
        }
    })
}

/// How a text begins, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS: usize = 40;
    match text.char_indices().nth(CHARACTERS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        DictionaryArray, Int8Array, LargeStringArray, NullArray, StringArray, StringViewArray,
    };

    use super::*;

    #[test]
    fn every_form_of_texts_has_the_same_rows() {
        let texts = [Some("a"), None, Some(""), Some("a")];
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some(""), None, Some("a")]));
        let keys = Int8Array::from(vec![Some(2), None, Some(0), Some(2)]);
        let null_value = Int8Array::from(vec![Some(2), Some(1), Some(0), Some(2)]);
        let dictionary = |keys| DictionaryArray::new(keys, Arc::clone(&values));
        let forms: [ArrayRef; 5] = [
            Arc::new(StringArray::from_iter(texts)),
            Arc::new(LargeStringArray::from_iter(texts)),
            Arc::new(StringViewArray::from_iter(texts)),
            Arc::new(dictionary(keys)),
            Arc::new(dictionary(null_value)),
        ];
        for array in forms {
            assert_eq!(rows(&array).unwrap(), texts, "{}", array.data_type());
            let slice = array.slice(1, 2);
            assert_eq!(rows(&slice).unwrap(), texts[1..3], "{}", array.data_type());
        }
    }

    #[test]
    fn nothing_but_nulls_is_nothing_but_nulls() {
        let no_values: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        let no_keys = Int8Array::from(vec![None, None]);
        let forms: [ArrayRef; 2] = [
            Arc::new(NullArray::new(2)),
            Arc::new(DictionaryArray::new(no_keys, no_values)),
        ];
        for array in forms {
            assert_eq!(rows(&array).unwrap(), [None, None]);
        }
        let numbers: ArrayRef = Arc::new(Int8Array::from(vec![1]));
        assert!(rows(&numbers).is_err());
    }

    #[test]
    fn an_excerpt_ends_between_characters() {
        assert_eq!(excerpt("a\"b"), r#""a\"b""#);
        assert_eq!(excerpt(&"é".repeat(41)), format!("{:?}…", "é".repeat(40)));
    }
}
