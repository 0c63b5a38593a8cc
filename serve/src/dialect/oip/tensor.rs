//! Tensors of texts, in JSON or behind it as bytes.

use std::fmt;

use bytes::{Buf as _, Bytes};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use super::INPUT;
use crate::failure::{Failure, Kind};
use crate::list::List;
use crate::object::Object;
use crate::options::MOST_TEXTS;

/// A tensor of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Tensor {
    name: String,
    datatype: String,
    shape: Vec<usize>,
    /// Texts, in the order of rows.
    #[serde(default)]
    data: Option<List<Text>>,
    #[serde(default)]
    parameters: Option<Object<Parameters>>,
}

#[derive(Debug, Default, Deserialize)]
struct Parameters {
    /// Bytes of the tensor behind the JSON.
    #[serde(default)]
    binary_data_size: Option<usize>,
}

impl Tensor {
    /// The texts. `behind` is what follows the JSON.
    ///
    /// # Errors
    /// Another tensor than one of texts, and all errors of [`Texts::checked`](crate::texts::Texts::checked).
    pub(super) fn texts(self, behind: Bytes) -> Result<Vec<String>, Failure> {
        let count = check(&self.name, &self.datatype, &self.shape)?;
        let Object(parameters) = self.parameters.unwrap_or(Object(Parameters::default()));
        let texts = match (self.data, parameters.binary_data_size) {
            (Some(texts), None) if behind.is_empty() => {
                let texts = texts.checked("inputs", |Text(text)| text.is_empty())?;
                texts.into_iter().map(|Text(text)| text).collect()
            }
            (None, Some(size)) if size == behind.len() => of_raw(behind)?,
            (None, Some(size)) => {
                let there = behind.len();
                return Err(wrong(format!(
                    "binary_data_size is {size}, and {there} bytes are behind the JSON"
                )));
            }
            _ => {
                return Err(wrong(
                    "a tensor has either data, or binary_data_size with so many bytes behind the JSON",
                ));
            }
        };
        counted(texts, count)
    }
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::field("inputs", message)
}

/// The number of texts that a tensor says it has.
///
/// # Errors
/// A tensor that is not one of texts.
pub(in super::super) fn check(
    name: &str,
    datatype: &str,
    shape: &[usize],
) -> Result<usize, Failure> {
    if name != INPUT {
        return Err(wrong(format!(
            "the model has no such input; its one input is {INPUT:?}"
        )));
    }
    if datatype != "BYTES" {
        return Err(wrong(format!("the input {INPUT:?} has the datatype BYTES")));
    }
    match *shape {
        [count] | [count, 1] => Ok(count),
        _ => Err(wrong(format!(
            "the input {INPUT:?} has the shape [n] or [n, 1]"
        ))),
    }
}

/// The texts, if there are as many as the shape says.
pub(in super::super) fn counted(texts: Vec<String>, count: usize) -> Result<Vec<String>, Failure> {
    match texts.len() {
        there if there == count => Ok(texts),
        there => Err(wrong(format!(
            "the shape is for {count} texts, and there are {there}"
        ))),
    }
}

/// The texts of a tensor in one piece: each has its length in four bytes, little-endian, before it.
///
/// # Errors
/// Bytes that end too early, and all errors of [`of_bytes`].
pub(in super::super) fn of_raw(mut bytes: Bytes) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::new();
    while !bytes.is_empty() {
        let at = texts.len();
        // One more than there may be is refused below.
        if at > MOST_TEXTS {
            break;
        }
        let length = (bytes.len() >= 4).then(|| bytes.get_u32_le() as usize);
        let Some(length) = length.filter(|&length| length <= bytes.len()) else {
            return Err(wrong(format!("text {at} is cut short")));
        };
        texts.push(bytes.split_to(length));
    }
    of_bytes(texts)
}

/// The texts of a tensor whose elements are apart.
///
/// # Errors
/// None or too many, and an element that is empty or no UTF-8.
pub(in super::super) fn of_bytes(texts: Vec<Bytes>) -> Result<Vec<String>, Failure> {
    if texts.len() > MOST_TEXTS {
        let message =
            format!("there are more than {MOST_TEXTS} texts, which a request takes at most");
        return Err(Failure::new(Kind::TooMany, message).about("inputs"));
    }
    if texts.is_empty() {
        return Err(Failure::new(Kind::Empty, "the list of texts is empty").about("inputs"));
    }
    let text = |(at, bytes): (usize, &Bytes)| match std::str::from_utf8(bytes) {
        Ok("") => Err(wrong(format!("text {at} is empty"))),
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(wrong(format!("text {at} is no UTF-8"))),
    };
    texts.iter().enumerate().map(text).collect()
}

/// A text, by itself or as the one element of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of one text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Text, E> {
                Ok(Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<Text, A::Error> {
                let text = row.next_element()?;
                let text = text.ok_or_else(|| Error::invalid_length(0, &self))?;
                match row.next_element::<IgnoredAny>()? {
                    Some(_) => Err(Error::invalid_length(2, &self)),
                    None => Ok(Text(text)),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(json: &str, behind: &[u8]) -> Result<Vec<String>, String> {
        let tensor: Tensor = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let behind = Bytes::copy_from_slice(behind);
        tensor.texts(behind).map_err(|failure| failure.message)
    }

    fn tensor(shape: &str, rest: &str) -> String {
        format!(r#"{{"name": "text", "datatype": "BYTES", "shape": {shape}, {rest}}}"#)
    }

    #[test]
    fn texts_are_read_from_json_and_from_bytes() {
        let flat = tensor("[2]", r#""data": ["a", "ä"]"#);
        let rows = tensor("[2, 1]", r#""data": [["a"], ["ä"]]"#);
        for json in [flat, rows] {
            assert_eq!(read(&json, b"").unwrap(), ["a", "ä"]);
        }
        let bytes = b"\x01\0\0\0a\x02\0\0\0\xc3\xa4";
        let behind = tensor("[2]", r#""parameters": {"binary_data_size": 11}"#);
        assert_eq!(read(&behind, bytes).unwrap(), ["a", "ä"]);
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        let sized = |size: usize| {
            tensor(
                "[1]",
                &format!(r#""parameters": {{"binary_data_size": {size}}}"#),
            )
        };
        let many = b"\x01\0\0\0a".repeat(MOST_TEXTS + 1);
        for (json, behind, reason) in [
            (tensor("[3]", r#""data": ["a"]"#), &b""[..], "for 3 texts"),
            (
                tensor("[1, 2]", r#""data": ["a", "b"]"#),
                b"",
                "the shape [n]",
            ),
            (tensor("[]", r#""data": ["a"]"#), b"", "the shape [n]"),
            (tensor("[1]", r#""data": ["a"]"#), b"x", "either data"),
            (tensor("[1]", r#""data": [""]"#), b"", "text 0 is empty"),
            (tensor("[0]", r#""data": []"#), b"", "is empty"),
            (tensor("[1]", r#""data": [7]"#), b"", "expected a text"),
            (
                tensor("[2]", r#""data": [["a", "b"]]"#),
                b"",
                "invalid length 2",
            ),
            (tensor("[1]", r#""data": [[]]"#), b"", "invalid length 0"),
            (tensor("[1]", r#""x": 1"#), b"", "either data"),
            (sized(5), b"\x01\0\0\0", "4 bytes are behind"),
            (sized(4), b"\x01\0\0\0", "text 0 is cut short"),
            (sized(3), b"\x01\0\0", "text 0 is cut short"),
            (sized(8), b"\xff\xff\xff\xffabcd", "text 0 is cut short"),
            (sized(5), b"\x01\0\0\0\xff", "no UTF-8"),
            (sized(4), b"\0\0\0\0", "text 0 is empty"),
            (sized(0), b"", "is empty"),
            (sized(many.len()), &many, "more than 2048"),
            (flipped("name"), b"", "no such input"),
            (flipped("datatype"), b"", "datatype BYTES"),
        ] {
            let error = read(&json, behind).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
        fn flipped(field: &str) -> String {
            let mut json: serde_json::Value =
                serde_json::from_str(&tensor("[1]", r#""data": ["a"]"#)).unwrap();
            json[field] = "other".into();
            json.to_string()
        }
    }
}
