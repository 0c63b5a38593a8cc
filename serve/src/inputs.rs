//! What a classifier reads: a text, a pair of texts, or a batch of both.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

use crate::failure::Failure;
use crate::list::List;

/// A text, or two that the model reads together.
pub(crate) type Item = Vec<String>;

/// The inputs of a request, as text-embeddings-inference has them: `"a"` and `["a"]` are a text, `["a", "b"]` a pair, and
/// `[["a"], ["b", "c"]]` a batch of a text and a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inputs {
    items: List<Several>,
    is_batch: bool,
}

impl Inputs {
    /// The items, of one or two texts each, and whether they are a batch.
    ///
    /// # Errors
    /// As [`Texts::checked`](crate::texts::Texts::checked).
    pub(crate) fn checked(self) -> Result<(Vec<Item>, bool), Failure> {
        let empty = |Several(item): &Several| item.iter().any(String::is_empty);
        let items = self.items.checked("inputs", empty)?;
        let items = items.into_iter().map(|Several(item)| item).collect();
        Ok((items, self.is_batch))
    }
}

const FORMS: &str = "a text, a pair [text, text], or a batch of both: [[text], [text, text], ...]";

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Inputs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Inputs, E> {
                Ok(one(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Inputs, A::Error> {
                let (items, is_batch) = match list.next_element()? {
                    None => (List::read(Vec::new(), &mut list)?, true),
                    Some(Part::Several(first)) => (List::read(vec![first], &mut list)?, true),
                    Some(Part::Text(first)) => {
                        let second: Option<String> = list.next_element()?;
                        if list.next_element::<IgnoredAny>()?.is_some() {
                            return Err(Error::invalid_length(3, &self));
                        }
                        return Ok(one([first].into_iter().chain(second).collect()));
                    }
                };
                Ok(Inputs { items, is_batch })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

fn one(item: Item) -> Inputs {
    Inputs {
        items: List::one(Several(item)),
        is_batch: false,
    }
}

/// The first element of a list, which says what the list is.
enum Part {
    Text(String),
    Several(Several),
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(FORMS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Part, E> {
                Ok(Part::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Part, A::Error> {
                OneOrTwo.visit_seq(list).map(Part::Several)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// An element of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Several(Item);

impl<'de> Deserialize<'de> for Several {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrTwo)
    }
}

struct OneOrTwo;

impl<'de> Visitor<'de> for OneOrTwo {
    type Value = Several;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of one or two texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Several, A::Error> {
        let mut item = Vec::with_capacity(1);
        while item.len() < 2 {
            match list.next_element()? {
                Some(text) => item.push(text),
                None if item.is_empty() => return Err(Error::invalid_length(0, &self)),
                None => return Ok(Several(item)),
            }
        }
        match list.next_element::<IgnoredAny>()? {
            Some(_) => Err(Error::invalid_length(3, &self)),
            None => Ok(Several(item)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<(Vec<Item>, bool), String> {
        let inputs: Inputs = serde_json::from_str(json).map_err(|error| error.to_string())?;
        inputs.checked().map_err(|failure| failure.message)
    }

    #[test]
    fn texts_pairs_and_batches_are_told_apart() {
        for (json, items, is_batch) in [
            (r#""a""#, vec![vec!["a"]], false),
            (r#"["a"]"#, vec![vec!["a"]], false),
            (r#"["a", "b"]"#, vec![vec!["a", "b"]], false),
            (r#"[["a"]]"#, vec![vec!["a"]], true),
            (r#"[["a", "b"]]"#, vec![vec!["a", "b"]], true),
            (
                r#"[["a"], ["b", "c"], ["d"]]"#,
                vec![vec!["a"], vec!["b", "c"], vec!["d"]],
                true,
            ),
        ] {
            let (read, batch) = read(json).unwrap();
            assert_eq!(
                (read, batch),
                (items.into_iter().map(owned).collect(), is_batch),
                "{json}"
            );
        }
        fn owned(item: Vec<&str>) -> Item {
            item.into_iter().map(str::to_owned).collect()
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        for (json, reason) in [
            ("7", "expected a text, a pair"),
            ("[1]", "expected a text, a pair"),
            (r#"["a", "b", "c"]"#, "invalid length 3"),
            (r#"["a", ["b"]]"#, "expected a string"),
            (r#"[["a"], "b"]"#, "one or two texts"),
            (r#"[["a", "b", "c"]]"#, "invalid length 3"),
            ("[[]]", "invalid length 0"),
            ("[]", "is empty"),
            (r#"[["a"], ["b", ""]]"#, "text 1 is empty"),
            (r#""""#, "text 0 is empty"),
            (r#"[[["a"]]]"#, "expected a string"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
