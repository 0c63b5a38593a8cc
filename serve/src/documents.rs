//! The documents of a request: texts, or objects with a text.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::failure::Failure;
use crate::list::List;

/// A list of documents.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Documents(List<Document>);

impl Documents {
    /// The texts of the documents.
    ///
    /// # Errors
    /// As [`Texts::checked`](crate::texts::Texts::checked).
    pub(crate) fn checked(self, field: &'static str) -> Result<Vec<String>, Failure> {
        let documents = self.0.checked(field, |Document(text)| text.is_empty())?;
        Ok(documents.into_iter().map(|Document(text)| text).collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Document(String);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct WithText {
            text: String,
        }
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or an object with the field text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Document, E> {
                Ok(Document(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Document, E> {
                Ok(Document(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Document, A::Error> {
                let WithText { text } = WithText::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Document(text))
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
        let documents: Documents = serde_json::from_str(json).map_err(|error| error.to_string())?;
        documents
            .checked("documents")
            .map_err(|failure| failure.message)
    }

    #[test]
    fn texts_and_objects_are_documents() {
        let mixed = r#"["a", {"text": "b"}, {"title": 7, "text": "c"}]"#;
        assert_eq!(read(mixed).unwrap(), ["a", "b", "c"]);
        for (json, reason) in [
            (r#""a""#, "expected a list"),
            ("[1]", "expected a text, or an object"),
            ("[[]]", "expected a text, or an object"),
            (r#"[{"title": "a"}]"#, "missing field `text`"),
            (r#"[{"text": null}]"#, "expected a string"),
            (r#"["a", {"text": ""}]"#, "text 1 is empty"),
            ("[]", "is empty"),
            ("null", "expected a list"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
