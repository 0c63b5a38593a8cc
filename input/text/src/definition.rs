//! `tokenizer.json` as it is read: one pass, the vocabulary straight into flat buffers.
//!
//! The format is that of Hugging Face `tokenizers` (<https://github.com/huggingface/tokenizers>,
//! `tokenizers/src/tokenizer/serialization.rs`). The small parts (normaliser, pre-tokeniser, post-processor) stay
//! JSON values for the code that builds them. Only the vocabulary, which is nearly the whole file, has its own
//! reader. The file's padding length is ignored, and its truncation is only told: the caller sets both.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use crate::error::Fault;
use crate::json::{Bounded, Room, twice};
use crate::trie::Pieces;

/// The whole file.
#[derive(Debug, Default, Clone)]
pub(crate) struct Definition {
    pub(crate) added_tokens: Vec<AddedTokenDefinition>,
    pub(crate) normalizer: Option<Value>,
    pub(crate) pre_tokenizer: Option<Value>,
    pub(crate) post_processor: Option<Value>,
    pub(crate) decoder: Option<Value>,
    pub(crate) padding: Option<PaddingDefinition>,
    pub(crate) truncation: Option<Value>,
    pub(crate) model: ModelDefinition,
}

/// A token that is found in the text before anything else looks at it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AddedTokenDefinition {
    pub(crate) id: u32,
    pub(crate) content: String,
    #[serde(default)]
    pub(crate) single_word: bool,
    #[serde(default)]
    pub(crate) lstrip: bool,
    #[serde(default)]
    pub(crate) rstrip: bool,
    #[serde(default = "yes")]
    pub(crate) normalized: bool,
    #[serde(default)]
    pub(crate) special: bool,
}

fn yes() -> bool {
    true
}

/// What a padding token looks like; how far to pad is not the file's business.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PaddingDefinition {
    #[serde(default)]
    pub(crate) pad_id: u32,
    #[serde(default)]
    pub(crate) pad_type_id: u32,
}

/// The model's part of the file, whatever its kind.
#[derive(Debug, Default, Clone)]
pub(crate) struct ModelDefinition {
    pub(crate) kind: Option<String>,
    pub(crate) vocabulary: Option<Vocabulary>,
    pub(crate) merges: Option<Merges>,
    pub(crate) unk_id: Option<u32>,
    pub(crate) unk_token: Option<String>,
    pub(crate) continuing_subword_prefix: Option<String>,
    pub(crate) end_of_word_suffix: Option<String>,
    pub(crate) max_input_chars_per_word: Option<usize>,
    pub(crate) fuse_unk: bool,
    pub(crate) byte_fallback: bool,
    pub(crate) ignore_merges: bool,
    /// A piece may be there twice, and the later counts: lines of `vocab.txt`, as `transformers`
    /// reads them. Members of an object may not, because readers differ in which of them counts.
    pub(crate) repeats: bool,
}

/// The pieces of a model.
#[derive(Debug, Clone)]
pub(crate) enum Vocabulary {
    /// `[[piece, score], ...]`, the id being the place: Unigram.
    Scored { pieces: Pieces, scores: Vec<f64> },
    /// `{piece: id, ...}`: WordPiece, WordLevel and BPE.
    Mapped { pieces: Pieces, ids: Vec<u32> },
}

/// BPE's merges, two pieces each, end to end.
#[derive(Debug, Default, Clone)]
pub(crate) struct Merges(pub(crate) Pieces);

impl Definition {
    /// Reads the file.
    ///
    /// # Errors
    /// Words saying what is wrong and where (line and column).
    pub(crate) fn parse(json: &[u8]) -> Result<Self, Fault> {
        let room = Room::of(json.len());
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let read = File(&room)
            .deserialize(&mut deserializer)
            .and_then(|definition| deserializer.end().map(|()| definition));
        read.map_err(|error| match room.is_exceeded() {
            true => Fault::Excess(error.to_string()),
            false => Fault::Invalid(error.to_string()),
        })
    }
}

/// Notes a member that is read, of which there may be one.
fn once<E: serde::de::Error>(seen: &mut Vec<String>, name: &str) -> Result<(), E> {
    if seen.iter().any(|before| before == name) {
        return Err(twice(name));
    }
    seen.push(name.to_owned());
    Ok(())
}

const TOO_LARGE: &str = "the vocabulary holds more than 4 GiB of text";

/// Reads the file, whose small parts may take so much room.
struct File<'a>(&'a Room);

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = Definition;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Definition, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = Definition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object of a tokenizer.json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Definition, A::Error> {
        let mut definition = Definition::default();
        let mut seen = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "version" => {
                    let version: String = map.next_value()?;
                    if version != "1.0" {
                        return Err(A::Error::custom(format_args!(
                            "version {version:?} of the format is not known, only \"1.0\" is"
                        )));
                    }
                }
                "added_tokens" => {
                    let tokens: Option<_> = map.next_value()?;
                    definition.added_tokens = tokens.unwrap_or_default();
                }
                "normalizer" => definition.normalizer = self.part(&mut map)?,
                "pre_tokenizer" => definition.pre_tokenizer = self.part(&mut map)?,
                "post_processor" => definition.post_processor = self.part(&mut map)?,
                "decoder" => definition.decoder = self.part(&mut map)?,
                "padding" => definition.padding = map.next_value()?,
                "truncation" => definition.truncation = self.part(&mut map)?,
                "model" => definition.model = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            }
            once(&mut seen, &key)?;
        }
        if !seen.iter().any(|name| name == "model") {
            return Err(A::Error::missing_field("model"));
        }
        Ok(definition)
    }
}

impl File<'_> {
    fn part<'de, A: MapAccess<'de>>(&self, map: &mut A) -> Result<Option<Value>, A::Error> {
        let value = map.next_value_seed(Bounded(self.0))?;
        Ok(Some(value).filter(|value| !value.is_null()))
    }
}

impl<'de> Deserialize<'de> for ModelDefinition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Model;
        impl<'de> Visitor<'de> for Model {
            type Value = ModelDefinition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tokenizer's model")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ModelDefinition, A::Error> {
                let mut model = ModelDefinition::default();
                let mut seen = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "type" => model.kind = map.next_value()?,
                        "vocab" => model.vocabulary = Some(map.next_value()?),
                        "merges" => model.merges = Some(map.next_value()?),
                        "unk_id" => model.unk_id = map.next_value()?,
                        "unk_token" => model.unk_token = map.next_value()?,
                        "continuing_subword_prefix" => {
                            model.continuing_subword_prefix = map.next_value()?;
                        }
                        "end_of_word_suffix" => model.end_of_word_suffix = map.next_value()?,
                        "max_input_chars_per_word" => {
                            model.max_input_chars_per_word = map.next_value()?;
                        }
                        "fuse_unk" => model.fuse_unk = flag(&mut map)?,
                        "byte_fallback" => model.byte_fallback = flag(&mut map)?,
                        "ignore_merges" => model.ignore_merges = flag(&mut map)?,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    }
                    once(&mut seen, &key)?;
                }
                Ok(model)
            }
        }
        deserializer.deserialize_map(Model)
    }
}

/// A boolean, or `null` for `false`.
fn flag<'de, A: MapAccess<'de>>(map: &mut A) -> Result<bool, A::Error> {
    Ok(map.next_value::<Option<bool>>()?.unwrap_or(false))
}

/// Appends the next string to the pieces without making a `String` of it.
struct Append<'a>(&'a mut Pieces);

impl<'de> DeserializeSeed<'de> for Append<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Append<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a piece of the vocabulary")
    }

    fn visit_str<E: serde::de::Error>(self, piece: &str) -> Result<(), E> {
        if self.0.push(piece) {
            Ok(())
        } else {
            Err(E::custom(TOO_LARGE))
        }
    }
}

impl<'de> Deserialize<'de> for Vocabulary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocabulary;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of [piece, score] or a map from piece to id")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocabulary, A::Error> {
                let mut pieces = Pieces::default();
                let mut scores = Vec::new();
                while let Some(score) = list.next_element_seed(ScoredPiece(&mut pieces))? {
                    scores.push(score);
                }
                scores.shrink_to_fit();
                Ok(Vocabulary::Scored { pieces, scores })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocabulary, A::Error> {
                let mut pieces = Pieces::default();
                let mut ids = Vec::new();
                while map.next_key_seed(Append(&mut pieces))?.is_some() {
                    ids.push(map.next_value()?);
                }
                Ok(Vocabulary::Mapped { pieces, ids })
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// One `[piece, score]`.
struct ScoredPiece<'a>(&'a mut Pieces);

impl<'de> DeserializeSeed<'de> for ScoredPiece<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<f64, D::Error> {
        deserializer.deserialize_tuple(2, self)
    }
}

impl<'de> Visitor<'de> for ScoredPiece<'_> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[piece, score]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<f64, A::Error> {
        let short = || A::Error::custom("an entry of the vocabulary is not [piece, score]");
        pair.next_element_seed(Append(self.0))?.ok_or_else(short)?;
        pair.next_element()?.ok_or_else(short)
    }
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Merges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of merges")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merges, A::Error> {
                let mut pieces = Pieces::default();
                while list.next_element_seed(Merge(&mut pieces))?.is_some() {}
                Ok(Merges(pieces))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// One merge: `"left right"` in older files, `["left", "right"]` since.
struct Merge<'a>(&'a mut Pieces);

impl<'de> DeserializeSeed<'de> for Merge<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Merge<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a merge of two pieces")
    }

    fn visit_str<E: serde::de::Error>(self, line: &str) -> Result<(), E> {
        if line.starts_with("#version") {
            return Ok(());
        }
        let mut parts = line.split(' ');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(left), Some(right), None) => {
                if self.0.push(left) && self.0.push(right) {
                    Ok(())
                } else {
                    Err(E::custom(TOO_LARGE))
                }
            }
            _ => Err(E::custom(format_args!(
                "the merge {line:?} is not two pieces with a space between"
            ))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<(), A::Error> {
        for _ in 0..2 {
            pair.next_element_seed(Append(&mut *self.0))?
                .ok_or_else(|| A::Error::custom("a merge is not two pieces"))?;
        }
        match pair.next_element::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("a merge is more than two pieces")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_members_does_not_matter() {
        for json in [
            r#"{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["a",-1.5]]}}"#,
            r#"{"extra":[1,{"x":2}],"model":{"vocab":[["<unk>",0],["a",-1.5]],"unk_id":0,"type":"Unigram"},"version":"1.0"}"#,
        ] {
            let definition = Definition::parse(json.as_bytes()).unwrap();
            assert_eq!(definition.model.kind.as_deref(), Some("Unigram"));
            assert_eq!(definition.model.unk_id, Some(0));
            let Some(Vocabulary::Scored { pieces, scores }) = definition.model.vocabulary else {
                panic!("a scored vocabulary");
            };
            assert_eq!(pieces.iter().collect::<Vec<_>>(), ["<unk>", "a"]);
            assert_eq!(scores, [0.0, -1.5]);
        }
    }

    #[test]
    fn both_ways_of_writing_merges_are_read() {
        for merges in [
            r##"["#version: 0.2", "a b", "ab c"]"##,
            r#"[["a","b"],["ab","c"]]"#,
        ] {
            let merges: Merges = serde_json::from_str(merges).unwrap();
            assert_eq!(merges.0.iter().collect::<Vec<_>>(), ["a", "b", "ab", "c"]);
        }
        for broken in [
            r#"["a"]"#,
            r#"["a b c"]"#,
            r#"[["a"]]"#,
            r#"[["a","b","c"]]"#,
            "[1]",
        ] {
            assert!(serde_json::from_str::<Merges>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn errors_say_where() {
        let parse = |json: &[u8]| match Definition::parse(json).unwrap_err() {
            Fault::Invalid(words) => words,
            fault => panic!("{fault:?}"),
        };
        let error = parse(b"{\"model\": {\"vocab\": [[\"a\"]]}}");
        assert!(
            error.contains("[piece, score]") && error.contains("column"),
            "{error}"
        );
        let error = parse(b"{\"version\": \"2.0\"}");
        assert!(error.contains("2.0"), "{error}");
        let error = parse(b"{}");
        assert!(error.contains("model"), "{error}");
    }
}
