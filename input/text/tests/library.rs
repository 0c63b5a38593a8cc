//! Files with unsupported features: read by the crate `tokenizers` if its feature is on, with the same ids, template,
//! truncation and identity; else refused with the feature's name.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_tokenize::{Limits, Tokenizer, TruncationSide};
use serde_json::{Value, json};

use support::bundle;
use support::twins::around;

/// A file whose first split has a backreference, or one that means the same without. Neither
/// matches anything in the texts.
fn file(pattern: &str, model: Value) -> Value {
    let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let spaces = json!({"type": "WhitespaceSplit"});
    around(
        json!({"type": "Lowercase"}),
        json!({"type": "Sequence", "pretokenizers": [split, spaces]}),
        model,
    )
}

fn load(json: &Value) -> isovec_tokenize::Result<Tokenizer> {
    Tokenizer::from_files(&bundle(serde_json::to_vec(json).unwrap()), "here")
}

fn models() -> [Value; 3] {
    let vocab = json!({"<unk>": 0, "<s>": 1, "[CLS]": 2, "a": 3, "b": 4, "ab": 5, "##b": 6});
    [
        json!({"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab}),
        json!({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab}),
        json!({"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": ["a b"]}),
    ]
}

#[test]
fn what_both_read_has_the_same_ids() {
    for model in models() {
        let own = load(&file("\u{e000}\u{e000}", model.clone())).unwrap();
        assert_eq!(own.tokenized_by(), "isovec");
        let other = load(&file("(\u{e000})\\1", model));
        if !cfg!(feature = "tokenizers") {
            let error = other.unwrap_err();
            assert_eq!(error.kind(), "UnsupportedTokenizer");
            assert!(
                error.to_string().contains("feature `tokenizers`"),
                "{error}"
            );
            continue;
        }
        let other = other.unwrap();
        assert_eq!(other.tokenized_by(), "tokenizers");
        let facts = |of: &Tokenizer| {
            (
                of.vocab_size(),
                of.max_id(),
                of.pad_id(),
                of.model_kind(),
                of.token_to_id("ab"),
            )
        };
        assert_eq!(facts(&own), facts(&other));
        assert_ne!(own.identity(), other.identity());
        let texts = ["", "a", "AB ab b c", "ab <s> ab", "b ab a b ab ab b"];
        for max_tokens in [None, Some(4), Some(6)] {
            for truncation_side in [
                TruncationSide::End,
                TruncationSide::Start,
                TruncationSide::Middle,
            ] {
                let mut limits = Limits::default();
                (limits.max_tokens, limits.truncation_side) = (max_tokens, truncation_side);
                assert_eq!(
                    own.encode(&texts, &limits).unwrap(),
                    other.encode(&texts, &limits).unwrap()
                );
                let pair = |of: &Tokenizer| of.encode_pair(texts[2], texts[4], &limits);
                assert_eq!(pair(&own), pair(&other));
            }
        }
    }
}

/// What costs too much is not handed to a crate without bounds.
#[test]
fn what_is_too_costly_is_refused_with_either() {
    let mut json = file("(\u{e000})\\1", models()[0].clone());
    json["post_processor"] = json!([vec![0; 2_000_000]]);
    assert_eq!(load(&json).unwrap_err().kind(), "TooCostly");
}
