//! The texts of a request: one, or a list.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::failure::Failure;
use crate::list::List;

/// The texts that a request has under one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts(List<Text>);

impl Texts {
    /// The texts.
    ///
    /// # Errors
    /// A list without texts or with more than [`MOST_TEXTS`](crate::MOST_TEXTS), and a text without a character.
    pub(crate) fn checked(self, field: &'static str) -> Result<Vec<String>, Failure> {
        let texts = self.0.checked(field, |Text(text)| text.is_empty())?;
        Ok(texts.into_iter().map(|Text(text)| text).collect())
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

struct Read;

impl<'de> Visitor<'de> for Read {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts (token ids are for /v1/embeddings)")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Texts, E> {
        Ok(Texts(List::one(Text(text))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        List::read(Vec::new(), &mut list).map(Texts)
    }
}

/// A text in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl Visitor<'_> for One {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text (token ids are for /v1/embeddings)")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Text, E> {
                Ok(Text(text))
            }
        }
        deserializer.deserialize_any(One)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::failure::Kind;
    use crate::options::MOST_TEXTS;

    fn read(json: &str) -> Result<Vec<String>, String> {
        let texts: Texts = serde_json::from_str(json).map_err(|error| error.to_string())?;
        texts.checked("input").map_err(|failure| failure.message)
    }

    #[test]
    fn one_text_and_a_list_are_taken() {
        assert_eq!(read(r#""a""#).unwrap(), ["a"]);
        assert_eq!(read(r#"["a", "\u00e4", "c"]"#).unwrap(), ["a", "ä", "c"]);
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for (json, reason) in [
            ("[1, 2]", "token ids are for"),
            ("[[1, 2], [3]]", "token ids are for"),
            ("7", "token ids are for"),
            ("null", "expected a text or a list"),
            (r#"{"text": "a"}"#, "expected a text or a list"),
            (r#"["a", null]"#, "expected a text"),
            ("[]", "is empty"),
            (r#""""#, "text 0 is empty"),
            (r#"["a", ""]"#, "text 1 is empty"),
            (r#""\ud800""#, "hex escape"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }

    #[test]
    fn the_longest_list_is_taken_and_a_longer_one_is_counted_and_not_kept() {
        let list = |texts: usize| serde_json::to_string(&vec!["a"; texts]).unwrap();
        assert_eq!(read(&list(MOST_TEXTS)).unwrap().len(), MOST_TEXTS);
        let Texts(kept) = serde_json::from_str(&list(MOST_TEXTS + 7)).unwrap();
        assert_eq!(kept.lengths(), (MOST_TEXTS, MOST_TEXTS + 7));
        let texts = Texts(kept);
        let failure = texts.checked("input").unwrap_err();
        assert_eq!(failure.kind, Kind::TooMany);
        assert_eq!(failure.field, Some("input"));
    }
}
