//! Invalid files and unexpected texts: they give a typed error that names the fault and its place, or the right ids,
//! and never a panic.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use std::collections::BTreeMap;

use bytes::Bytes;
use isovec_tokenize::{Limits, TokenizeError, Tokenizer};
use proptest::prelude::*;
use serde_json::{Value, json};

use support::{bundle, xlmr};

fn load(json: &Value) -> Result<Tokenizer, TokenizeError> {
    Tokenizer::from_files(&bundle(serde_json::to_vec(json).unwrap()), "here")
}

fn wordlevel() -> Value {
    json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1}},
    })
}

fn with(path: &str, value: Value) -> Value {
    let mut json = wordlevel();
    *json.pointer_mut(path).expect("the path exists") = value;
    json
}

#[test]
fn a_missing_tokenizer_names_what_is_there() {
    let error = Tokenizer::from_files(&BTreeMap::new(), "some/model").unwrap_err();
    assert_eq!(error.kind(), "MissingTokenizer");
    assert!(
        error
            .to_string()
            .contains("some/model has no tokenizer.json")
    );

    let files = BTreeMap::from([("sentencepiece.bpe.model".to_owned(), Bytes::new())]);
    let error = Tokenizer::from_files(&files, "some/model").unwrap_err();
    assert!(error.to_string().contains("save_pretrained"), "{error}");
}

#[test]
fn broken_files_say_what_is_wrong() {
    for (json, words) in [
        (with("/version", json!("3.0")), "3.0"),
        (with("/model/type", json!("Novel")), "Novel"),
        (
            with("/model/vocab", json!([["a", 0.0]])),
            "list where a map",
        ),
        (with("/model/vocab", json!({"a": -1})), "-1"),
        (with("/model/vocab", json!({"a": "x"})), "expected u32"),
        (with("/model/vocab", json!(null)), "map from piece to id"),
        (
            with("/model", json!({"type": "BPE", "vocab": {"a": 0}})),
            "no merges",
        ),
        (
            with("/model", json!({"type": "WordPiece"})),
            "no vocabulary",
        ),
        (
            with(
                "/model",
                json!({"type": "Unigram", "unk_id": 1, "vocab": [["a", 0.0]]}),
            ),
            "unk_id",
        ),
        (
            with("/model", json!({"type": "Unigram", "vocab": {"a": 0}})),
            "map where a list",
        ),
        (with("/normalizer", json!({"type": "Strip"})), "strip_left"),
        (
            with(
                "/normalizer",
                json!({"type": "Precompiled", "precompiled_charsmap": "AQAAAA=="}),
            ),
            "precompiled_charsmap",
        ),
        (
            with(
                "/normalizer",
                json!({"type": "Replace", "pattern": {"Regex": "("}, "content": ""}),
            ),
            "normalizer",
        ),
        (
            with("/pre_tokenizer", json!({"type": "Split"})),
            "pre_tokenizer",
        ),
        (
            with(
                "/pre_tokenizer",
                json!({"type": "FixedLength", "length": 0}),
            ),
            "length",
        ),
        (with("/added_tokens", json!([{"content": "x"}])), "id"),
    ] {
        let error = load(&json).unwrap_err();
        assert_eq!(error.kind(), "InvalidTokenizer", "{error}");
        let message = error.to_string();
        assert!(
            message.contains("here: tokenizer.json") && message.contains(words),
            "{message:?} does not say {words:?}"
        );
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let model = r#"{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"a":1,"b":2}}"#;
    let file = |parts: &str, model: &str| format!("{{{parts}\"model\":{model}}}");
    for (json, words) in [
        // Members of the file, of the model, of a component at any depth, and pieces.
        (
            file(&format!("\"model\":{model},"), model),
            "\"model\" is there twice",
        ),
        (
            file(r#""normalizer":null,"normalizer":{"type":"NFC"},"#, model),
            "\"normalizer\"",
        ),
        (
            file(r#""decoder":null,"decoder":{"type":"Fuse"},"#, model),
            "\"decoder\"",
        ),
        (
            file(
                "",
                r#"{"unk_token":"u","unk_token":"a","vocab":{"u":0,"a":1}}"#,
            ),
            "\"unk_token\"",
        ),
        (
            file("", r#"{"vocab":{"u":0},"vocab":{"u":0,"a":1}}"#),
            "\"vocab\"",
        ),
        (
            file(
                r#""normalizer":{"type":"Sequence","normalizers":[{"type":"NFC","type":"NFD"}]},"#,
                model,
            ),
            "\"type\"",
        ),
        (
            file(
                r#""added_tokens":[{"id":0,"content":"x","content":"y"}],"#,
                model,
            ),
            "duplicate field `content`",
        ),
        (
            file(
                "",
                r#"{"type":"WordLevel","vocab":{"u":0,"a":1,"b":2,"a":3}}"#,
            ),
            "holds \"a\" twice",
        ),
        (
            file("", r#"{"type":"WordPiece","vocab":{"u":0,"u":0}}"#),
            "holds \"u\" twice",
        ),
        (
            file(
                "",
                r#"{"type":"BPE","merges":[],"vocab":{"u":0,"\u0075":1}}"#,
            ),
            "holds \"u\" twice",
        ),
    ] {
        let error = Tokenizer::from_files(&bundle(json.clone()), "here").unwrap_err();
        assert_eq!(error.kind(), "InvalidTokenizer", "{json}: {error}");
        assert!(error.to_string().contains(words), "{json}: {error}");
    }
    // What nobody reads may be there twice.
    let json = file(r#""other":1,"other":2,"#, model);
    assert!(Tokenizer::from_files(&bundle(json), "here").is_ok());
}

#[test]
fn what_is_not_implemented_is_named() {
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    for (part, value, words) in [
        ("post_processor", json!({"type": "Novel"}), "Novel"),
        ("normalizer", json!({"type": "Novel"}), "Novel"),
        ("normalizer", json!("Novel"), "normalizer"),
        ("pre_tokenizer", json!({"type": "Novel"}), "Novel"),
        ("pre_tokenizer", split(r"(a)\1"), "\\1"),
        ("pre_tokenizer", split(r"\p{Klingon}"), "Klingon"),
    ] {
        let mut json = wordlevel();
        json[part] = value;
        // Patterns that the other crate understands are its own where it is there.
        if let Ok(tokenizer) = load(&json) {
            assert!(cfg!(feature = "tokenizers") && words == "\\1");
            assert_eq!(tokenizer.tokenized_by(), "tokenizers");
            continue;
        }
        let error = load(&json).unwrap_err();
        assert_eq!(error.kind(), "UnsupportedTokenizer", "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_file_cut_short_anywhere_is_an_error() {
    let json = xlmr::tokenizer_json(3, 200);
    for end in (0..json.trim_end().len()).step_by(7) {
        let cut = Bytes::copy_from_slice(&json.as_bytes()[..end]);
        let error = Tokenizer::from_files(&bundle(cut), "here").unwrap_err();
        assert_eq!(error.kind(), "InvalidTokenizer", "cut at {end}");
    }
}

#[test]
fn files_that_are_not_json_at_all() {
    for content in [
        &b""[..],
        b"\0\0\0",
        b"<html>404</html>",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"version https://git-lfs",
    ] {
        let error =
            Tokenizer::from_files(&bundle(Bytes::from_static(content)), "here").unwrap_err();
        assert_eq!(error.kind(), "InvalidTokenizer");
    }
    let mut files = bundle(serde_json::to_vec(&wordlevel()).unwrap());
    files.insert("tokenizer_config.json".to_owned(), Bytes::from_static(b"{"));
    let error = Tokenizer::from_files(&files, "here").unwrap_err();
    assert!(
        error.to_string().contains("tokenizer_config.json"),
        "{error}"
    );
}

#[test]
fn an_old_vocabulary_must_be_berts() {
    let file = |name: &str, content: &'static str| {
        (name.to_owned(), Bytes::from_static(content.as_bytes()))
    };
    let files = BTreeMap::from([file("vocab.txt", "[PAD]\n[UNK]\nhello\n")]);
    let error = Tokenizer::from_files(&files, "here").unwrap_err();
    assert!(error.to_string().contains("[CLS]"), "{error}");
    let files = BTreeMap::from([
        file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\n"),
        file(
            "tokenizer_config.json",
            r#"{"tokenizer_class": "PhobertTokenizer"}"#,
        ),
    ]);
    let error = Tokenizer::from_files(&files, "here").unwrap_err();
    assert!(error.to_string().contains("PhobertTokenizer"), "{error}");
    let files = BTreeMap::from([
        file("vocab.txt", "<p>\n[UNK]\n<c>\n[SEP]\nhello\r\n\n"),
        file(
            "tokenizer_config.json",
            r#"{"tokenizer_class": "BertTokenizerFast", "cls_token": {"content": "<c>"},
                "pad_token": "<p>", "mask_token": null, "model_max_length": 128}"#,
        ),
    ]);
    let tokenizer = Tokenizer::from_files(&files, "here").unwrap();
    let encoding = &tokenizer
        .encode(&["Hello there <p>"], &Limits::default())
        .unwrap()[0];
    assert_eq!(encoding.ids, [2, 4, 1, 0, 3]);
    assert_eq!(tokenizer.model_max_tokens(), Some(128));
}

#[test]
fn texts_without_any_text() {
    let mut json = wordlevel();
    json["post_processor"] = json!({"type": "BertProcessing", "sep": ["s", 7], "cls": ["c", 8]});
    let tokenizer = load(&json).unwrap();
    assert_eq!(tokenizer.max_id(), 8);
    assert!(
        tokenizer
            .encode(&[], &Limits::default())
            .unwrap()
            .is_empty()
    );
    for text in ["", " ", "\n\t "] {
        let encoding = &tokenizer.encode(&[text], &Limits::tokens(3)).unwrap()[0];
        assert_eq!(encoding.ids, [8, 7]);
        assert_eq!(
            (encoding.truncated, encoding.tokens_before_truncation),
            (false, 2)
        );
    }
    let encoding = &tokenizer.encode(&["a\0a A"], &Limits::default()).unwrap()[0];
    assert_eq!(encoding.ids, [8, 0, 1, 7]);
    let error = tokenizer.encode(&["a"], &Limits::tokens(2)).unwrap_err();
    assert_eq!(error.kind(), "LimitTooSmall");
}

#[test]
fn a_text_that_cannot_be_expressed_is_an_error() {
    let tokenizer = load(&with("/model/unk_token", json!("<none>"))).unwrap();
    assert_eq!(
        tokenizer.encode(&["a a"], &Limits::default()).unwrap()[0].ids,
        [1, 1]
    );
    let error = tokenizer
        .encode(&["a", "b"], &Limits::default())
        .unwrap_err();
    assert_eq!(error.kind(), "NoUnknownToken");
    assert!(error.to_string().contains("<none>"), "{error}");
}

#[test]
fn a_megabyte_through_the_general_way() {
    let json = xlmr::tokenizer_json(5, 2000);
    let tokenizer = Tokenizer::from_files(&bundle(json), "here").unwrap();
    let spaced = "a b ".repeat(250_000);
    let encoding = &tokenizer.encode(&[&spaced], &Limits::tokens(512)).unwrap()[0];
    assert_eq!(encoding.ids.len(), 512);
    assert!(encoding.truncated && encoding.tokens_before_truncation > 500_000);
    let unspaced = "一".repeat(350_000);
    let encoding = &tokenizer
        .encode(&[&unspaced], &Limits::tokens(512))
        .unwrap()[0];
    assert_eq!(encoding.ids.len(), 512);
    assert!(encoding.truncated);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Whatever bytes of a good file are overwritten, loading it and encoding with what loads
    /// ends in a result.
    #[test]
    fn flipped_bytes_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        text in any::<String>(),
        bert in any::<bool>(),
    ) {
        let mut json = if bert {
            let mut json = wordlevel();
            json["normalizer"] = json!({"type": "BertNormalizer", "clean_text": true,
                "handle_chinese_chars": true, "strip_accents": null, "lowercase": true});
            json["pre_tokenizer"] = json!({"type": "BertPreTokenizer"});
            json["post_processor"] = json!({"type": "BertProcessing", "sep": ["s", 7], "cls": ["c", 8]});
            serde_json::to_vec(&json).unwrap()
        } else {
            xlmr::tokenizer_json(9, 30).into_bytes()
        };
        for (place, byte) in flips {
            *place.get_mut(&mut json) = byte;
        }
        if let Ok(tokenizer) = Tokenizer::from_files(&bundle(json), "here") {
            let _ = tokenizer.encode(&[&text, "a b"], &Limits::tokens(8));
        }
    }
}
