//! Tensors of texts or of pictures' files, in JSON or behind it as bytes.

use std::fmt;

use bytes::{Buf as _, Bytes};
use isovec::ModelTask;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::failure::{Failure, Kind};
use crate::list::List;
use crate::object::Object;
use crate::options::MOST_TEXTS;
use crate::served::Served;
use crate::tokens::{self, Items};

/// The one input of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Input {
    Texts,
    /// Pictures, each the bytes of a file.
    Images,
}

impl Input {
    /// The input of a model that gives vectors.
    ///
    /// # Errors
    /// A model for another task.
    pub(in super::super) fn of(served: &Served) -> Result<Self, Failure> {
        match served.task() {
            ModelTask::EmbedImages => Ok(Self::Images),
            _ => served.embedder().map(|_| Self::Texts),
        }
    }

    /// Its name.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Self::Texts => "text",
            Self::Images => "image",
        }
    }

    /// That a request has another number of inputs than one.
    pub(in super::super) fn is_alone(self) -> Failure {
        wrong(format!("the model has one input, {:?}", self.name()))
    }

    /// What the model that has it does.
    pub(in super::super) fn task(self) -> ModelTask {
        match self {
            Self::Texts => ModelTask::Embed,
            Self::Images => ModelTask::EmbedImages,
        }
    }

    /// What an element of it is called.
    fn word(self) -> &'static str {
        match self {
            Self::Texts => "text",
            Self::Images => "picture",
        }
    }

    /// The number of elements that a tensor says it has.
    ///
    /// # Errors
    /// A tensor that is not this input.
    pub(in super::super) fn check(
        self,
        name: &str,
        datatype: &str,
        shape: &[usize],
    ) -> Result<usize, Failure> {
        let own = self.name();
        if name != own {
            return Err(wrong(format!(
                "the model has no such input; its one input is {own:?}"
            )));
        }
        if datatype != "BYTES" {
            return Err(wrong(format!("the input {own:?} has the datatype BYTES")));
        }
        match *shape {
            [count] | [count, 1] => Ok(count),
            _ => Err(wrong(format!(
                "the input {own:?} has the shape [n] or [n, 1]"
            ))),
        }
    }

    /// The elements of a tensor in one piece: each has its length in four bytes, little-endian, before it.
    ///
    /// # Errors
    /// Bytes that end too early, and all errors of [`of_bytes`](Self::of_bytes).
    pub(in super::super) fn of_raw(self, mut bytes: Bytes, count: usize) -> Result<Items, Failure> {
        let mut elements = Vec::new();
        while !bytes.is_empty() {
            let at = elements.len();
            // One more than there may be is refused below.
            if at > MOST_TEXTS {
                break;
            }
            let length = (bytes.len() >= 4).then(|| bytes.get_u32_le() as usize);
            let Some(length) = length.filter(|&length| length <= bytes.len()) else {
                return Err(wrong(format!("{} {at} is cut short", self.word())));
            };
            elements.push(bytes.split_to(length));
        }
        self.of_bytes(elements, count)
    }

    /// The elements of a tensor where they are apart.
    ///
    /// # Errors
    /// None, too many or another number than the shape says, an element that is empty, and a text that is no UTF-8.
    pub(in super::super) fn of_bytes(
        self,
        elements: Vec<Bytes>,
        count: usize,
    ) -> Result<Items, Failure> {
        let word = self.word();
        if elements.len() > MOST_TEXTS {
            let message =
                format!("there are more than {MOST_TEXTS} {word}s, which a request takes at most");
            return Err(Failure::new(Kind::TooMany, message).about("inputs"));
        }
        if elements.is_empty() {
            let message = format!("the list of {word}s is empty");
            return Err(Failure::new(Kind::Empty, message).about("inputs"));
        }
        if let Some(at) = elements.iter().position(Bytes::is_empty) {
            return Err(wrong(format!("{word} {at} is empty")));
        }
        self.counted(elements.len(), count)?;
        let text = |(at, bytes): (usize, &Bytes)| match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(wrong(format!("text {at} is no UTF-8"))),
        };
        Ok(match self {
            Self::Texts => {
                let texts: Result<_, Failure> = elements.iter().enumerate().map(text).collect();
                Items::Texts(texts?)
            }
            Self::Images => Items::Images(elements.into_iter().map(Vec::from).collect()),
        })
    }

    /// The elements of a tensor in JSON, where a file is in base64.
    fn of_json(self, data: List<Element>, count: usize) -> Result<Items, Failure> {
        let elements = data.checked("inputs", |Element(text)| text.is_empty())?;
        self.counted(elements.len(), count)?;
        let texts = elements.into_iter().map(|Element(text)| text);
        let file = |(at, text): (usize, String)| {
            tokens::file(&text).map_err(|why| wrong(format!("picture {at}: {why}")))
        };
        Ok(match self {
            Self::Texts => Items::Texts(texts.collect()),
            Self::Images => {
                let files: Result<_, Failure> = texts.enumerate().map(file).collect();
                Items::Images(files?)
            }
        })
    }

    /// Refuses another number of elements than the shape says.
    fn counted(self, there: usize, count: usize) -> Result<(), Failure> {
        let word = self.word();
        match there == count {
            true => Ok(()),
            false => Err(wrong(format!(
                "the shape is for {count} {word}s, and there are {there}"
            ))),
        }
    }
}

/// A tensor of a request.
#[derive(Debug, Deserialize)]
pub(super) struct Tensor {
    name: String,
    datatype: String,
    shape: Vec<usize>,
    /// Elements, in the order of rows.
    #[serde(default)]
    data: Option<List<Element>>,
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
    /// What is to be embedded. `behind` is what follows the JSON.
    ///
    /// # Errors
    /// A tensor that is not the input, and all errors of its elements.
    pub(super) fn items(self, input: Input, behind: Bytes) -> Result<Items, Failure> {
        let count = input.check(&self.name, &self.datatype, &self.shape)?;
        let Object(parameters) = self.parameters.unwrap_or(Object(Parameters::default()));
        match (self.data, parameters.binary_data_size) {
            (Some(data), None) if behind.is_empty() => input.of_json(data, count),
            (None, Some(size)) if size == behind.len() => input.of_raw(behind, count),
            (None, Some(size)) => {
                let there = behind.len();
                Err(wrong(format!(
                    "binary_data_size is {size}, and {there} bytes are behind the JSON"
                )))
            }
            _ => Err(wrong(
                "a tensor has either data, or binary_data_size with so many bytes behind the JSON",
            )),
        }
    }
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure::field("inputs", message)
}

/// An element, by itself or as the one element of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Element(String);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Element;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of one text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Element, E> {
                Ok(Element(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Element, E> {
                Ok(Element(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<Element, A::Error> {
                let text = row.next_element()?;
                let text = text.ok_or_else(|| Error::invalid_length(0, &self))?;
                match row.next_element::<IgnoredAny>()? {
                    Some(_) => Err(Error::invalid_length(2, &self)),
                    None => Ok(Element(text)),
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

    fn items(input: Input, json: &str, behind: &[u8]) -> Result<Items, String> {
        let tensor: Tensor = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let behind = Bytes::copy_from_slice(behind);
        let items = tensor.items(input, behind);
        items.map_err(|failure| failure.message)
    }

    fn read(json: &str, behind: &[u8]) -> Result<Vec<String>, String> {
        items(Input::Texts, json, behind).map(|items| match items {
            Items::Texts(texts) => texts,
            others => panic!("{others:?}"),
        })
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
    fn pictures_are_read_from_base64_and_from_bytes() {
        let image = |rest: &str| tensor("[2]", rest).replace("text", "image");
        let wanted = Items::Images(vec![vec![0, 1, 2], vec![0xff]]);
        let coded = image(r#""data": ["AAEC", "data:image/gif;base64,/w=="]"#);
        assert_eq!(items(Input::Images, &coded, b"").unwrap(), wanted);
        let behind = image(r#""parameters": {"binary_data_size": 12}"#);
        let bytes = b"\x03\0\0\0\x00\x01\x02\x01\0\0\0\xff";
        assert_eq!(items(Input::Images, &behind, bytes).unwrap(), wanted);

        for (json, behind, reason) in [
            (coded.replace("[2]", "[3]"), &b""[..], "for 3 pictures"),
            (coded.replace("AAEC", "A"), b"", "picture 0: "),
            (coded.replace("AAEC", ""), b"", "is empty"),
            (
                coded.replace("AAEC", "http://127.0.0.1/a.gif"),
                b"",
                "not followed",
            ),
            (behind.clone(), &bytes[..11], "11 bytes are behind"),
            (behind.replace("12", "4"), b"\0\0\0\0", "picture 0 is empty"),
            (
                behind.replace("12", "4"),
                b"\x01\0\0\0",
                "picture 0 is cut short",
            ),
            (
                coded.replace("image\"", "text\""),
                b"",
                "its one input is \"image\"",
            ),
        ] {
            let error = items(Input::Images, &json, behind).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
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
