//! Our tokenizer and Hugging Face `tokenizers`, made of the same file.

use isovec_tokenize::{Encoding, Limits, TokenizeError, Tokenizer, TruncationSide};
use serde_json::{Value, json};
use tokenizers::{
    EncodeInput, Encoding as LibraryEncoding, InputSequence, Tokenizer as LibraryTokenizer,
    TruncationDirection, TruncationParams,
};

use super::bundle;

/// The template of BERT and the tokens it needs, which every random vocabulary starts with.
pub fn around(normalizer: Value, pre_tokenizer: Value, model: Value) -> Value {
    let token = |id: u32, content: &str| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": content == "<s>",
            "rstrip": false, "normalized": false, "special": true})
    };
    let special = |id: &str, type_id: u32| json!({"SpecialToken": {"id": id, "type_id": type_id}});
    let sequence = |id: &str, type_id: u32| json!({"Sequence": {"id": id, "type_id": type_id}});
    json!({
        "version": "1.0",
        // Both must be overruled.
        "truncation": {"max_length": 3, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null,
            "pad_id": 1, "pad_type_id": 0, "pad_token": "<s>"},
        "added_tokens": [token(0, "<unk>"), token(1, "<s>"), token(2, "[CLS]")],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]", 0), sequence("A", 0), special("<s>", 0)],
            "pair": [special("[CLS]", 0), sequence("A", 0), special("<s>", 0), sequence("B", 1), special("<s>", 1)],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                "<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
            },
        },
        "decoder": null,
        "model": model,
    })
}

/// Both.
pub struct Twins {
    pub ours: Tokenizer,
    pub theirs: LibraryTokenizer,
}

impl Twins {
    pub fn new(json: &Value) -> Self {
        let bytes = serde_json::to_vec(json).unwrap();
        let mut theirs = LibraryTokenizer::from_bytes(&bytes).unwrap();
        theirs.with_padding(None);
        theirs.with_truncation(None).unwrap();
        let ours = Tokenizer::from_files(&bundle(bytes), "twins").unwrap();
        Self { ours, theirs }
    }

    /// A text and the ids that it has without special tokens are one, cut or not.
    fn agree_on_ids(&self, text: &str, ids: &[u32], room: usize) {
        let cut = Limits::tokens(room + self.ours.special_tokens_count());
        for limits in [Limits::default(), cut] {
            let read = self.ours.encode(&[text], &limits).unwrap();
            let given = self.ours.encode_ids("", ids, &limits).unwrap();
            assert_eq!(read, [given], "{text:?}");
        }
    }

    /// Both agree on every text and every pair of neighbours: unlimited, and cut on either side.
    pub fn agree_on(&mut self, texts: &[String], room: usize) {
        let mut inputs: Vec<EncodeInput> = texts.iter().map(|t| t.as_str().into()).collect();
        inputs.extend(
            texts
                .windows(2)
                .map(|pair| (pair[0].as_str(), pair[1].as_str()).into()),
        );
        self.theirs.with_truncation(None).unwrap();
        let whole: Vec<_> = inputs
            .iter()
            .map(|input| self.theirs.encode(input.clone(), true))
            .collect();
        for (input, theirs) in inputs.iter().zip(&whole) {
            let ours = self.encode(input, &Limits::default());
            match (theirs, ours) {
                (Ok(theirs), Ok(ours)) => {
                    same(theirs, &ours, input);
                    assert!(!ours.truncated);
                    assert_eq!(ours.tokens_before_truncation, theirs.len());
                }
                (Err(_), Err(TokenizeError::NoUnknownToken { .. })) => {}
                (theirs, ours) => panic!("{input:?}: theirs {theirs:?}, ours {ours:?}"),
            }
        }
        for (text, theirs) in texts.iter().zip(&whole) {
            if let Ok(theirs) = theirs {
                assert_eq!(self.ours.count_tokens(text).unwrap(), theirs.len());
                let ids = self.theirs.encode(text.as_str(), false).unwrap();
                self.agree_on_ids(text, ids.get_ids(), room);
            }
        }

        let limit = room + self.ours.special_tokens_count_pair();
        for (truncation_side, direction) in [
            (TruncationSide::End, TruncationDirection::Right),
            (TruncationSide::Start, TruncationDirection::Left),
        ] {
            let limits = Limits {
                max_tokens: Some(limit),
                truncation_side,
            };
            self.theirs
                .with_truncation(Some(TruncationParams {
                    max_length: limit,
                    direction,
                    ..Default::default()
                }))
                .unwrap();
            for (input, whole) in inputs.iter().zip(&whole) {
                // Where the whole text is an error, theirs may not come as far as the fault.
                let Ok(whole) = whole else { continue };
                let ours = self.encode(input, &limits).unwrap();
                assert_eq!(ours.truncated, whole.len() > limit, "{input:?}");
                assert_eq!(ours.tokens_before_truncation, whole.len());
                // Which of two texts gets the odd token when both are cut: theirs asks which is
                // longer after it stopped counting, ours asks which is longer.
                if self.odd_token_is_left(input, room) {
                    assert_eq!(ours.ids.len(), limit);
                    continue;
                }
                same(
                    &self.theirs.encode(input.clone(), true).unwrap(),
                    &ours,
                    input,
                );
            }
        }
    }

    fn odd_token_is_left(&self, input: &EncodeInput, room: usize) -> bool {
        let EncodeInput::Dual(InputSequence::Raw(first), InputSequence::Raw(second)) = input else {
            return false;
        };
        room % 2 == 1
            && [first, second].iter().all(|text| {
                let special = self.ours.special_tokens_count();
                self.ours.count_tokens(text).unwrap() - special > room / 2
            })
    }

    fn encode(&self, input: &EncodeInput, limits: &Limits) -> isovec_tokenize::Result<Encoding> {
        match input {
            EncodeInput::Single(InputSequence::Raw(text)) => Ok(self
                .ours
                .encode(&[text], limits)?
                .pop()
                .expect("as many as texts")),
            EncodeInput::Dual(InputSequence::Raw(first), InputSequence::Raw(second)) => {
                self.ours.encode_pair(first, second, limits)
            }
            other => panic!("{other:?} is not used here"),
        }
    }
}

fn same(theirs: &LibraryEncoding, ours: &Encoding, what: &EncodeInput) {
    assert_eq!(theirs.get_ids(), ours.ids, "ids of {what:?}");
    assert_eq!(theirs.get_type_ids(), ours.type_ids, "type ids of {what:?}");
}

/// Pieces with the special tokens first, as a map from piece to id.
pub fn mapped(pieces: &[String]) -> Value {
    let mut map = serde_json::Map::new();
    for piece in ["<unk>", "<s>", "[CLS]"]
        .into_iter()
        .chain(pieces.iter().map(String::as_str))
    {
        let id = map.len();
        map.entry(piece).or_insert(json!(id));
    }
    Value::Object(map)
}
