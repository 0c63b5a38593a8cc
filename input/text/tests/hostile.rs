//! Files that were made to do harm: whatever a small file asks of 64 KiB of text is done, or refused
//! by name, within 64 MiB and 32 times what was handed in. Steps are bounded by the same budget, so
//! that what is refused here would otherwise take minutes or for ever.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_tokenize::{Limits, TokenizeError, Tokenizer};
use serde_json::{Value, json};

use support::bundle;
use support::counting::{Counting, measured};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TEXT: usize = 64 << 10;
const MIB: usize = 1 << 20;

/// Loads the file and encodes the text with it, inside the bounds.
fn tried(json: &[u8], text: &str) -> Result<usize, TokenizeError> {
    let files = bundle(json.to_vec());
    let (result, _, peak) = measured(|| {
        let tokenizer = Tokenizer::from_files(&files, "hostile")?;
        let encoding = tokenizer.encode(&[text], &Limits::default())?;
        Ok(encoding[0].ids.len())
    });
    let most = 64 * MIB + 32 * (json.len() + text.len());
    assert!(peak <= most, "{peak} bytes, {most} allowed: {result:?}");
    result
}

fn of(json: &Value, text: &str) -> Result<usize, TokenizeError> {
    tried(&serde_json::to_vec(json).unwrap(), text)
}

/// The refusal, which names the part.
fn refused(json: &Value, text: &str, part: &str) {
    let error = of(json, text).expect_err(part);
    assert_eq!(error.kind(), "TooCostly", "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

fn words(normalizer: Value, pre_tokenizer: Value) -> Value {
    json!({
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
        "model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0}},
    })
}

fn replace(from: &str, to: &str) -> Value {
    json!({"type": "Replace", "pattern": {"String": from}, "content": to})
}

fn sequence(normalizers: Vec<Value>) -> Value {
    json!({"type": "Sequence", "normalizers": normalizers})
}

fn repeated(part: &str) -> String {
    part.repeat(TEXT / part.len())
}

#[test]
fn forty_doublings_are_refused() {
    let json = words(sequence(vec![replace("a", "aa"); 40]), Value::Null);
    refused(&json, "banana", "its normalizer \"Replace\"");
    refused(&json, &repeated("a"), "its normalizer \"Replace\"");
    // What grows inside the bounds is done.
    assert_eq!(
        of(
            &words(sequence(vec![replace("a", "aa"); 9]), Value::Null),
            "banana"
        ),
        Ok(1)
    );
}

#[test]
fn every_edit_has_the_bound() {
    let long = "x".repeat(60_000);
    let spell = json!({"type": "ByteLevel"});
    for (normalizer, part) in [
        (replace("", &long), "Replace"),
        (replace("a", &long), "Replace"),
        (
            sequence(vec![json!({"type": "Prepend", "prepend": long}); 30]),
            "Prepend",
        ),
        (sequence(vec![spell.clone(); 30]), "ByteLevel"),
        (
            sequence(vec![
                replace("a", &"\u{fdfa}".repeat(5)),
                json!({"type": "NFKD"}),
            ]),
            "NFKD",
        ),
        (
            sequence(vec![
                replace("a", &"\u{fdfa}".repeat(5)),
                json!({"type": "NFKC"}),
            ]),
            "NFKC",
        ),
        (
            json!({"type": "Precompiled", "precompiled_charsmap": long_rule()}),
            "Precompiled",
        ),
    ] {
        refused(&words(normalizer, Value::Null), &repeated("aé"), part);
    }
    let metaspace =
        json!({"type": "Metaspace", "replacement": "\u{10ffff}", "prepend_scheme": "always"});
    let cut = json!({"type": "FixedLength", "length": 1});
    let many = json!({"type": "Sequence", "pretokenizers": vec![json!([cut, metaspace]); 8]
        .into_iter().flat_map(|pair| pair.as_array().cloned().unwrap()).collect::<Vec<_>>()});
    refused(
        &words(Value::Null, many),
        &repeated("a"),
        "its pre_tokenizer",
    );
}

/// Rules that put 60,000 characters in the place of "a".
fn long_rule() -> String {
    use base64::Engine as _;
    let mut units = [0_u32; 512];
    let place = usize::from(b'a');
    units[place] = u32::from(b'a') | 1 << 8 | 256 << 10;
    units[place ^ 256] = 0;
    let mut rules = (units.len() as u32 * 4).to_le_bytes().to_vec();
    rules.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    rules.extend([b'x'; 60_000]);
    base64::engine::general_purpose::STANDARD.encode(rules)
}

#[test]
fn what_published_tokenizers_do_to_any_text_is_inside() {
    // The worst of Unicode: eleven times as long, then up to twice as long again.
    let text = "\u{fdfa}".repeat(TEXT / 3);
    for pre_tokenizer in [
        Value::Null,
        json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}),
        json!({"type": "BertPreTokenizer"}),
    ] {
        for form in ["NFKC", "NFKD"] {
            assert!(of(&words(json!({"type": form}), pre_tokenizer.clone()), &text).is_ok());
        }
    }
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": true});
    let short = "\u{fdfa}".repeat(2500);
    assert!(of(&words(json!({"type": "NFKC"}), bytes.clone()), &short).is_ok());
    // Every character its own piece, each with a mark before it.
    let cut = json!({"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false});
    let both = json!({"type": "Sequence", "pretokenizers": [cut, bytes]});
    assert!(of(&words(Value::Null, both), &repeated("a b")).is_ok());
}

#[test]
fn components_that_multiply_time_are_refused() {
    let text = repeated("é野 ");
    let many = |kind: &str| sequence(vec![json!({"type": kind}); 4000]);
    for kind in ["NFKC", "Lowercase", "StripAccents", "Nmt"] {
        refused(&words(many(kind), Value::Null), &text, kind);
    }
    let empty = json!({"type": "Sequence", "pretokenizers": []});
    for part in [
        json!({"type": "WhitespaceSplit"}),
        json!({"type": "UnicodeScripts"}),
    ] {
        let all = json!({"type": "Sequence", "pretokenizers": vec![part.clone(); 4000]});
        refused(
            &words(Value::Null, all),
            &text,
            part["type"].as_str().unwrap(),
        );
    }
    // Sequences of nothing, on many pieces.
    let mut json = words(
        sequence(vec![json!({"type": "Sequence", "normalizers": []}); 4000]),
        json!({"type": "Sequence", "pretokenizers": vec![empty; 4000]}),
    );
    json["added_tokens"] = json!([{"id": 0, "content": "u", "normalized": false}]);
    refused(&json, &repeated("ua"), "Sequence");
    // The normaliser runs over every added token, too.
    let mut json = words(many("NFKC"), Value::Null);
    json["added_tokens"] = (0..4000)
        .map(|id| json!({"id": id, "content": format!("é{id}")}))
        .collect();
    refused(&json, "", "NFKC");
}

#[test]
fn added_tokens_do_not_grow_together() {
    let mut json = words(replace("a", &"x".repeat(30_000)), Value::Null);
    json["added_tokens"] = (0..4000)
        .map(|id| json!({"id": id, "content": format!("a{id}")}))
        .collect();
    refused(&json, "", "its normalizer, of added tokens");
}

#[test]
fn long_pieces_and_long_words_do_not_square() {
    let (long, text) = ("a".repeat(TEXT), repeated("a"));
    let almost = format!("{long}b");
    let unigram = json!({"model": {"type": "Unigram", "unk_id": 0,
        "vocab": [["u", 0.0], ["a", -1.0], [almost, -1.0]]}});
    refused(&unigram, &text, "its Unigram model");
    let wordpiece = json!({"model": {"type": "WordPiece", "unk_token": "u",
        "continuing_subword_prefix": "", "max_input_chars_per_word": u32::MAX,
        "vocab": {"u": 0, "a": 1, &almost: 2}}});
    refused(&wordpiece, &text, "its WordPiece model");
    let mut added = words(Value::Null, Value::Null);
    added["added_tokens"] = json!([{"id": 0, "content": almost}]);
    refused(&added, &text, "its list of added tokens");
    // As one long piece it is fast.
    let whole =
        json!({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["u", 0.0], ["a", -1.0]]}});
    assert_eq!(of(&whole, &text), Ok(TEXT));
    let bpe = json!({"model": {"type": "BPE", "vocab": {"a": 0, "aa": 1, "aaaa": 2},
        "merges": ["a a", "aa aa"]}});
    assert_eq!(of(&bpe, &text), Ok(TEXT / 4));
}

#[test]
fn affixes_are_not_spelt_for_ever() {
    let model = |affix: usize| {
        let mut vocab: serde_json::Map<String, Value> = (0..256)
            .map(|byte| (format!("<0x{byte:02X}>"), json!(byte)))
            .collect();
        vocab.insert("a".to_owned(), json!(256));
        json!({"model": {"type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": [],
            "continuing_subword_prefix": "#".repeat(affix)}})
    };
    refused(&model(65), "a", "continuing_subword_prefix");
    refused(&model(64), &repeated("b"), "its BPE model");
    assert_eq!(of(&model(2), "bbb"), Ok(7));
}

#[test]
fn added_tokens_that_overlap_or_are_many() {
    let token = |id: usize, content: &str| json!({"id": id, "content": content, "lstrip": true, "rstrip": true, "normalized": false});
    let mut json = words(Value::Null, Value::Null);
    json["added_tokens"] = json!([token(0, " "), token(1, "\t")]);
    assert_eq!(of(&json, &repeated(" \t")), Ok(1));
    let bert = |tokens: Vec<Value>| {
        let mut json = words(
            json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true}),
            json!({"type": "BertPreTokenizer"}),
        );
        json["added_tokens"] = tokens.into();
        json
    };
    let many = (0..20_000)
        .map(|id| token(id, &format!("aaaaaaaaaa{id}")))
        .collect();
    assert_eq!(of(&bert(many), &repeated("a")), Ok(1));
}

#[test]
fn a_template_of_many_tokens_is_refused() {
    let special = json!({"SpecialToken": {"id": "s", "type_id": 0}});
    let mut row = vec![special; 3000];
    row.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
    let mut json = words(Value::Null, Value::Null);
    json["post_processor"] = json!({"type": "TemplateProcessing", "single": row, "pair": row,
        "special_tokens": {"s": {"id": "s", "ids": vec![0; 3000], "tokens": ["s"]}}});
    refused(&json, "a", "its post_processor");
}

#[test]
fn files_of_nothing_but_brackets() {
    for (part, count) in [("0,", 8 << 20), ("[0],", 4 << 20), (r#"{"":0},"#, 2 << 20)] {
        for member in ["normalizer", "post_processor", "unknown"] {
            let many = part.repeat(count / part.len());
            let json = format!(
                r#"{{"{member}":[{many}0],"model":{{"type":"WordLevel","unk_token":"u","vocab":{{"u":0}}}}}}"#
            );
            assert_eq!(
                tried(json.as_bytes(), "a").is_ok(),
                member == "unknown",
                "{part}"
            );
        }
    }
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let json = format!(
            r#"{{"normalizer":{}0{},"model":{{"type":"WordLevel","vocab":{{}}}}}}"#,
            open.repeat(100_000),
            close.repeat(100_000)
        );
        assert_eq!(
            tried(json.as_bytes(), "a").unwrap_err().kind(),
            "InvalidTokenizer"
        );
    }
}

#[test]
fn patterns_are_bounded_together() {
    let split = |pattern: &str| {
        json!({"type": "Split", "pattern": {"Regex": pattern},
        "behavior": "Isolated", "invert": false})
    };
    let all = |part: Value, count| json!({"type": "Sequence", "pretokenizers": vec![part; count]});
    let large = split("(?:ab{3}){1,900}");
    refused(&words(Value::Null, all(large, 3000)), "a", "its patterns");
    // What one of them may take on a text, many may not.
    let slow = split("[ab]{7}c|b");
    refused(
        &words(Value::Null, all(slow, 3000)),
        &repeated("aaaab"),
        "its pre_tokenizer \"Split\"",
    );
}

#[test]
fn words_are_compiled_once() {
    let part = json!({"type": "ByteLevel", "add_prefix_space": false});
    let all = json!({"type": "Sequence", "pretokenizers": vec![part; 10_000]});
    assert_eq!(of(&words(Value::Null, all), ""), Ok(0));
}
