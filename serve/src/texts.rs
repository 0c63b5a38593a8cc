//! The texts of a request: one, or a list.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::failure::{Failure, Kind};
use crate::options::MOST_TEXTS;

/// The texts that a request has under one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts {
    /// At most [`MOST_TEXTS`] of them.
    texts: Vec<String>,
    /// All that there were.
    count: usize,
}

impl Texts {
    /// The texts.
    ///
    /// # Errors
    /// A list without texts or with more than [`MOST_TEXTS`], and a text without a character.
    pub(crate) fn checked(self, field: &'static str) -> Result<Vec<String>, Failure> {
        let Self { texts, count } = self;
        if count > MOST_TEXTS {
            let message = format!("there are {count} texts; a request takes at most {MOST_TEXTS}");
            return Err(Failure::new(Kind::TooMany, message).about(field));
        }
        if texts.is_empty() {
            return Err(Failure::new(Kind::Empty, "the list of texts is empty").about(field));
        }
        match texts.iter().position(String::is_empty) {
            Some(at) => Err(Failure::field(field, format!("text {at} is empty"))),
            None => Ok(texts),
        }
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
        f.write_str("a text or a list of texts (token ids are not taken)")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Texts, E> {
        Ok(Texts {
            texts: vec![text],
            count: 1,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while texts.len() < MOST_TEXTS {
            match list.next_element::<Text>()? {
                Some(Text(text)) => texts.push(text),
                None => break,
            }
        }
        // What is over the limit is counted and not kept.
        let mut count = texts.len();
        while count >= MOST_TEXTS && list.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Texts { texts, count })
    }
}

/// A text in a list.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl Visitor<'_> for One {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text (token ids are not taken)")
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
            ("[1, 2]", "token ids are not taken"),
            ("[[1, 2], [3]]", "token ids are not taken"),
            ("7", "token ids are not taken"),
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
        let texts: Texts = serde_json::from_str(&list(MOST_TEXTS + 7)).unwrap();
        assert_eq!(
            (texts.texts.len(), texts.count),
            (MOST_TEXTS, MOST_TEXTS + 7)
        );
        let failure = texts.checked("input").unwrap_err();
        assert_eq!(failure.kind, Kind::TooMany);
        assert_eq!(failure.field, Some("input"));
    }
}
