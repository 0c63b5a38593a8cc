//! A hash of a tokenizer's behaviour, equal for all files that mean the same.
//!
//! Two indexes can be searched together only when their texts were cut into the same tokens, so the fingerprint of a
//! set of vectors contains this hash. It covers everything that affects ids (vocabulary, merges, added tokens,
//! normaliser, pre-tokeniser, special tokens) and omits everything else: the file's own truncation and padding, its
//! decoder, white space, and the order of members.

use serde_json::Value;

use crate::definition::{Definition, Vocabulary};

/// Raise when the hashed content changes its form.
const SCHEME: &str = "isovec tokenizer 1";

/// BLAKE3 in lower-case hexadecimal digits.
pub(crate) fn identity(definition: &Definition) -> String {
    let mut out = Content(blake3::Hasher::new());
    out.text(SCHEME);

    out.number(definition.added_tokens.len() as u64);
    for token in &definition.added_tokens {
        out.number(token.id.into());
        out.text(&token.content);
        for flag in [
            token.single_word,
            token.lstrip,
            token.rstrip,
            token.normalized,
            token.special,
        ] {
            out.number(flag.into());
        }
    }
    out.value(definition.normalizer.as_ref().unwrap_or(&Value::Null));
    out.value(definition.pre_tokenizer.as_ref().unwrap_or(&Value::Null));
    out.value(definition.post_processor.as_ref().unwrap_or(&Value::Null));

    let model = &definition.model;
    for name in [
        &model.kind,
        &model.unk_token,
        &model.continuing_subword_prefix,
        &model.end_of_word_suffix,
    ] {
        out.option(name.as_deref(), Content::text);
    }
    out.option(model.unk_id.map(u64::from), Content::number);
    let longest_word = model.max_input_chars_per_word.map(|chars| chars as u64);
    out.option(longest_word, Content::number);
    for flag in [model.fuse_unk, model.byte_fallback, model.ignore_merges] {
        out.number(flag.into());
    }
    match &model.vocabulary {
        None => out.number(0),
        Some(Vocabulary::Scored { pieces, scores }) => {
            out.number(1);
            out.number(pieces.len() as u64);
            for (piece, &score) in pieces.iter().zip(scores) {
                out.text(piece);
                // Scores are published as f32. A JSON reader may be off by the last bit of an
                // f64, depending on how it was compiled; rounded to f32 all agree.
                out.number((score as f32).to_bits().into());
            }
        }
        Some(Vocabulary::Mapped { pieces, ids }) => {
            out.number(2);
            out.number(pieces.len() as u64);
            let mut entries: Vec<(u32, &str)> = ids.iter().copied().zip(pieces.iter()).collect();
            entries.sort();
            for (id, piece) in entries {
                out.number(id.into());
                out.text(piece);
            }
        }
    }
    match &model.merges {
        None => out.number(0),
        Some(merges) => {
            out.number(1 + merges.0.len() as u64);
            for piece in merges.0.iter() {
                out.text(piece);
            }
        }
    }
    out.0.finalize().to_hex().to_string()
}

/// Content for the hash, each part with its length so that no two contents read alike.
struct Content(blake3::Hasher);

impl Content {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.number(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// A JSON value, its members in the order of their names.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.text("null"),
            Value::Bool(flag) => self.text(if *flag { "true" } else { "false" }),
            Value::Number(number) => {
                // Each kind under its own name: a whole number may have the bits of a fraction.
                if let Some(integer) = number.as_i64() {
                    self.text("number");
                    self.number(integer as u64);
                } else if let Some(integer) = number.as_u64() {
                    self.text("large number");
                    self.number(integer);
                } else {
                    self.text("fraction");
                    self.number(number.as_f64().unwrap_or(f64::NAN).to_bits());
                }
            }
            Value::String(text) => {
                self.text("string");
                self.text(text);
            }
            Value::Array(items) => {
                self.text("array");
                self.number(items.len() as u64);
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(members) => {
                self.text("object");
                self.number(members.len() as u64);
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                for (name, member) in members {
                    self.text(name);
                    self.value(member);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> String {
        identity(&Definition::parse(json.as_bytes()).unwrap())
    }

    const PLAIN: &str = r#"{"normalizer":{"type":"Replace","content":"x"},"model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"a":1}}}"#;

    #[test]
    fn what_does_not_decide_ids_does_not_count() {
        let padded = r#"{
            "truncation": {"max_length": 128}, "padding": {"pad_id": 7}, "decoder": {"type": "X"},
            "model": {"vocab": {"a": 1, "u": 0}, "unk_token": "u", "type": "WordLevel"},
            "normalizer": {"content": "x", "type": "Replace"}
        }"#;
        assert_eq!(of(PLAIN), of(padded));
        assert_eq!(of(PLAIN).len(), 64);
    }

    #[test]
    fn what_decides_ids_counts() {
        for (from, to) in [
            ("\"a\":1", "\"a\":2"),
            ("\"a\":1", "\"b\":1"),
            ("\"unk_token\":\"u\"", "\"unk_token\":\"a\""),
            ("\"content\":\"x\"", "\"content\":\"y\""),
            (
                "\"model\"",
                "\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"model\"",
            ),
        ] {
            assert_ne!(of(PLAIN), of(&PLAIN.replacen(from, to, 1)), "{to}");
        }
    }

    #[test]
    fn numbers_of_different_kinds_never_read_alike() {
        let with =
            |number: &str| of(&PLAIN.replacen("\"content\":\"x\"", &format!("\"n\":{number}"), 1));
        // 1.0, the whole number with its bits, and numbers that only differ beyond an f64.
        let numbers = [
            "1.0",
            "4607182418800017408",
            "1",
            "9223372036854775809",
            "9223372036854775810",
        ];
        let names: std::collections::BTreeSet<_> =
            numbers.iter().map(|number| with(number)).collect();
        assert_eq!(names.len(), numbers.len());
    }

    #[test]
    fn a_score_counts_as_f32() {
        let scored = |score: &str| of(&format!(r#"{{"model":{{"vocab":[["a",{score}]]}}}}"#));
        assert_eq!(scored("-3.9299705028533936"), scored("-3.9299705028533932"));
        assert_ne!(scored("-3.9299705028533936"), scored("-3.92997"));
    }
}
