//! What a request of OpenAI's protocol embeds: a text, texts, a text as token ids, or several of those; and pictures.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::failure::Failure;
use crate::list::List;
use crate::object::Object;
use crate::texts::Text;

/// Texts as they are or as token ids, or pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    Texts(List<Text>),
    Tokens(List<Ids>),
    Images(List<File>),
}

/// What an [`Input`] holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Items {
    Texts(Vec<String>),
    Tokens(Vec<Vec<u32>>),
    /// The bytes of files.
    Images(Vec<Vec<u8>>),
}

impl Input {
    /// The texts, their token ids, or the pictures.
    ///
    /// # Errors
    /// A list without items or with more than [`MOST_TEXTS`](crate::MOST_TEXTS), and an item without a character or an id.
    pub(crate) fn checked(self, field: &'static str) -> Result<Items, Failure> {
        match self {
            Self::Texts(list) => {
                let texts = list.checked(field, |Text(text)| text.is_empty())?;
                let texts = texts.into_iter().map(|Text(text)| text);
                Ok(Items::Texts(texts.collect()))
            }
            Self::Tokens(list) => {
                let texts = list.checked(field, |Ids(ids)| ids.is_empty())?;
                let texts = texts.into_iter().map(|Ids(ids)| ids);
                Ok(Items::Tokens(texts.collect()))
            }
            Self::Images(list) => {
                let files = list.checked(field, |File(bytes)| bytes.is_empty())?;
                let files = files.into_iter().map(|File(bytes)| bytes);
                Ok(Items::Images(files.collect()))
            }
        }
    }
}

const FORMS: &str =
    "a text, a list of texts, a list of token ids, a list of such lists, or pictures";

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Input;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Input, E> {
                self.visit_string(text.to_owned())
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Input, E> {
                Ok(Input::Texts(List::one(Text(text))))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Input, A::Error> {
                let file = File::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Input::Images(List::one(file)))
            }

            /// The first element says what the list is.
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Input, A::Error> {
                Ok(match list.next_element()? {
                    None => Input::Texts(List::read(Vec::new(), &mut list)?),
                    Some(First::Text(text)) => Input::Texts(List::read(vec![text], &mut list)?),
                    Some(First::File(file)) => Input::Images(List::read(vec![file], &mut list)?),
                    Some(First::Ids(ids)) => Input::Tokens(List::read(vec![ids], &mut list)?),
                    Some(First::Id(id)) => {
                        let mut ids = vec![id];
                        while let Some(id) = list.next_element()? {
                            ids.push(id);
                        }
                        Input::Tokens(List::one(Ids(ids)))
                    }
                })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// The token ids of one text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Ids(Vec<u32>);

/// The bytes of a picture's file, as Jina's clients send it: `{"image": "..."}` with its base64, or with a URL that holds it (`data:`,
/// RFC 2397). Addresses of other servers are not followed: a client would choose whom this server asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File(Vec<u8>);

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct WithImage {
            image: String,
        }
        let Object(WithImage { image }) = Deserialize::deserialize(deserializer)?;
        file(&image).map(File).map_err(D::Error::custom)
    }
}

/// The bytes of a file in base64, or in a URL that holds it; or what is wrong.
pub(crate) fn file(image: &str) -> Result<Vec<u8>, String> {
    let coded = match image.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map(|(_, coded)| coded),
        None => Some(image).filter(|image| !image.contains(':')),
    };
    let coded = coded
        .ok_or("image is no base64 and no data:...;base64,... with it; a URL is not followed")?;
    let bytes = STANDARD.decode(coded);
    bytes.map_err(|error| format!("image is no base64: {error}"))
}

enum First {
    Text(Text),
    File(File),
    Id(u32),
    Ids(Ids),
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = First;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a token id, a list of token ids, or an object with an image")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<First, E> {
                self.visit_string(text.to_owned())
            }

            fn visit_string<E: Error>(self, text: String) -> Result<First, E> {
                Ok(First::Text(Text(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<First, A::Error> {
                File::deserialize(MapAccessDeserializer::new(map)).map(First::File)
            }

            fn visit_u64<E: Error>(self, id: u64) -> Result<First, E> {
                let id = u32::try_from(id);
                id.map(First::Id)
                    .map_err(|_| E::custom("a token id is too large"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
                let mut ids = Vec::new();
                while let Some(id) = list.next_element()? {
                    ids.push(id);
                }
                Ok(First::Ids(Ids(ids)))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::options::MOST_TEXTS;

    fn read(json: &str) -> Result<Items, String> {
        let input: Input = serde_json::from_str(json).map_err(|error| error.to_string())?;
        input.checked("input").map_err(|failure| failure.message)
    }

    #[test]
    fn the_first_element_says_what_a_list_is() {
        let texts = |texts: &[&str]| Items::Texts(texts.iter().map(|&t| t.to_owned()).collect());
        let tokens = |texts: &[&[u32]]| Items::Tokens(texts.iter().map(|t| t.to_vec()).collect());
        for (json, items) in [
            (r#""a""#, texts(&["a"])),
            (r#"["a", "\u00e4"]"#, texts(&["a", "ä"])),
            ("[7]", tokens(&[&[7]])),
            ("[7, 4294967295, 0]", tokens(&[&[7, u32::MAX, 0]])),
            ("[[7, 8], [9]]", tokens(&[&[7, 8], &[9]])),
            (r#"{"image": "AAEC"}"#, Items::Images(vec![vec![0, 1, 2]])),
            (
                r#"[{"image": "AAEC"}, {"image": "data:image/png;base64,Aw=="}]"#,
                Items::Images(vec![vec![0, 1, 2], vec![3]]),
            ),
        ] {
            assert_eq!(read(json).unwrap(), items, "{json}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for (json, reason) in [
            ("7", "expected a text, a list"),
            ("null", "expected a text, a list"),
            (r#"{"text": "a"}"#, "missing field `image`"),
            (r#"{"image": 7}"#, "expected a string"),
            (r#"{"image": "?"}"#, "no base64"),
            (r#"{"image": "data:image/png,a"}"#, "no base64"),
            (r#"{"image": "http://a/b.png"}"#, "not followed"),
            (r#"[{"image": "AAAA"}, "a"]"#, "expected an object"),
            (r#"["a", {"image": "AAAA"}]"#, "expected a text"),
            (r#"[{"image": ""}]"#, "text 0 is empty"),
            (r#"["a", 7]"#, "expected a text"),
            (r#"[7, "a"]"#, "expected u32"),
            ("[7, [8]]", "expected u32"),
            ("[[7], 8]", "expected a sequence"),
            (r#"[[7], ["a"]]"#, "expected u32"),
            ("[-1]", "expected a text, a token id"),
            ("[1.5]", "expected a text, a token id"),
            ("[4294967296]", "too large"),
            ("[7, 4294967296]", "expected u32"),
            ("[null]", "expected a text, a token id"),
            ("[]", "is empty"),
            ("[[]]", "text 0 is empty"),
            ("[[7], []]", "text 1 is empty"),
            (r#"["a", ""]"#, "text 1 is empty"),
            (r#""\ud800""#, "hex escape"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }

    #[test]
    fn a_list_of_ids_may_be_longer_than_a_list_of_texts() {
        let ids = serde_json::to_string(&vec![7; MOST_TEXTS + 1]).unwrap();
        let Items::Tokens(one) = read(&ids).unwrap() else {
            panic!("these are ids");
        };
        assert_eq!((one.len(), one[0].len()), (1, MOST_TEXTS + 1));
        let many = serde_json::to_string(&vec![[7]; MOST_TEXTS + 1]).unwrap();
        let error = read(&many).unwrap_err();
        assert!(error.contains("there are 2049 texts"), "{error}");
    }
}
