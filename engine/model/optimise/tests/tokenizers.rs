//! Trimmed tokenizers against their originals: texts of the corpus keep their tokens, all others still have some.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use isovec_optimize::vocabulary::{TrimmedTokenizer, trim_tokenizer};
use isovec_test_models::rng::Rng;
use isovec_test_models::tiny;
use isovec_tokenize::{Limits, Tokenizer};
use serde_json::{Value, json};

fn tokenizer(json: &[u8]) -> Tokenizer {
    let files = BTreeMap::from([("tokenizer.json".to_owned(), json.to_vec().into())]);
    Tokenizer::from_files(&files, "test").unwrap()
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let encoding = tokenizer.encode(&[text], &Limits::default()).unwrap();
    encoding.into_iter().next().unwrap().ids
}

/// Trims to the tokens of a corpus, and holds the result to the original on it.
fn trimmed(json: &Value, corpus: &[String], fixed: u32) -> (Tokenizer, TrimmedTokenizer) {
    let bytes = serde_json::to_vec(json).unwrap();
    let old = tokenizer(&bytes);
    let used: BTreeSet<u32> = corpus.iter().flat_map(|text| ids(&old, text)).collect();
    let trimmed = trim_tokenizer("test", &bytes, &used, fixed).unwrap();
    let new = tokenizer(&trimmed.json);
    for text in corpus {
        let back: Vec<u32> = ids(&new, text)
            .iter()
            .map(|&id| trimmed.rows[id as usize])
            .collect();
        assert_eq!(back, ids(&old, text), "{text:?}");
    }
    let again = trim_tokenizer("test", &bytes, &used, fixed).unwrap();
    assert_eq!(again, trimmed, "the same bytes on every run");
    (new, trimmed)
}

/// Random texts over some letters, without what WordPiece would call unknown.
fn texts(letters: &str, count: usize) -> Vec<String> {
    let letters: Vec<char> = letters.chars().collect();
    let mut rng = Rng::new(21);
    let mut below = |limit: usize| rng.below(limit as u64) as usize;
    let text = |below: &mut dyn FnMut(usize) -> usize| {
        let words = 1 + below(6);
        let word = |below: &mut dyn FnMut(usize) -> usize| -> String {
            (0..1 + below(7))
                .map(|_| letters[below(letters.len())])
                .collect()
        };
        (0..words)
            .map(|_| word(below))
            .collect::<Vec<_>>()
            .join(" ")
    };
    (0..count).map(|_| text(&mut below)).collect()
}

#[test]
fn word_piece_keeps_what_the_corpus_uses_and_spells_the_rest() {
    let json = tiny::tokenizer(&tiny::vocabulary());
    let corpus = ["the dog is an animal", "money in the bank, walked"].map(str::to_owned);
    let (new, report) = trimmed(&json, &corpus, 0);
    assert!(
        new.vocab_size() < report.before,
        "{} of {}",
        new.vocab_size(),
        report.before
    );
    for gone in ["mountain", "##ness"] {
        assert_eq!(new.token_to_id(gone), None, "{gone}");
    }
    for special in ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "dog", "##ed"] {
        assert!(new.token_to_id(special).is_some(), "{special}");
    }
    // Another word is spelt, and nothing of it is unknown.
    let spelt = ids(&new, "mountain");
    let unknown = new.token_to_id("[UNK]").unwrap();
    assert!(spelt.len() > 4 && !spelt.contains(&unknown), "{spelt:?}");
}

#[test]
fn many_random_corpora_keep_their_tokens() {
    let json = tiny::tokenizer(&tiny::vocabulary());
    for (seed, letters) in ["abcde", "thedoginsr", "aeioustrn"].into_iter().enumerate() {
        let all = texts(letters, 60);
        trimmed(&json, &all[seed * 10..seed * 10 + 20], 0);
    }
}

/// A Unigram tokenizer in which segmentations compete, with bytes to fall back on where asked.
fn unigram(bytes: bool) -> Value {
    let mut vocab = vec![
        json!(["<s>", 0.0]),
        json!(["<pad>", 0.0]),
        json!(["</s>", 0.0]),
        json!(["<unk>", 0.0]),
    ];
    if bytes {
        vocab.extend((0..256).map(|byte| json!([format!("<0x{byte:02X}>"), 0.0])));
    }
    let mut rng = Rng::new(5);
    let mut names = BTreeSet::new();
    for c in "\u{2581}abcdexyz".chars() {
        names.insert(c.to_string());
    }
    while names.len() < 400 {
        let length = 2 + rng.below(4) as usize;
        let letters: Vec<char> = "\u{2581}abcde".chars().collect();
        names.insert(
            (0..length)
                .map(|_| letters[rng.below(6) as usize])
                .collect(),
        );
    }
    for name in names {
        // As published scores are written: an f32 in all the digits of an f64.
        let score = -(1.0 + rng.unit() * 12.0);
        vocab.push(json!([name, f64::from(score as f32)]));
    }
    let added = |id: u32, content: &str| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let mask = vocab.len() as u32;
    json!({
        "version": "1.0", "truncation": null,
        "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_id": 1, "pad_type_id": 0, "pad_token": "<pad>"},
        "added_tokens": [added(0, "<s>"), added(1, "<pad>"), added(2, "</s>"), added(3, "<unk>"), added(mask, "<mask>")],
        "normalizer": null,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},
        "decoder": null,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": bytes},
    })
}

#[test]
fn unigram_keeps_best_paths_special_tokens_and_padding() {
    for bytes in [false, true] {
        let json = unigram(bytes);
        let old = serde_json::to_vec(&json).unwrap();
        let mut corpus = texts("abcde", 25);
        // What is unknown, before and after.
        corpus.push("ab \u{4e2d}\u{6587} cd".into());
        let (new, report) = trimmed(&json, &corpus, 2);
        assert!(
            new.vocab_size() * 3 < report.before * 2 || bytes,
            "{}",
            new.vocab_size()
        );
        assert_eq!(new.pad_id(), 1);
        assert_eq!(&report.rows[..4], [0, 1, 2, 3]);
        // The mask was the last of all ids, and is again: no piece, so numbered after the pieces.
        let mask = tokenizer(&old).token_to_id("<mask>").unwrap();
        assert_eq!(report.rows.last(), Some(&mask));
        assert_eq!(
            new.token_to_id("<mask>"),
            Some(report.rows.len() as u32 - 1)
        );
        let written: Value = serde_json::from_slice(&report.json).unwrap();
        assert_eq!(
            written["added_tokens"][4]["id"],
            json!(report.rows.len() - 1)
        );
        // Other texts still have tokens.
        assert!(ids(&new, "eeedc zyx \u{1f600}").len() > 4);
    }
}

/// Byte pair encoding with merges learnt on nothing but chance; every product is a piece.
fn bpe(ignore_merges: bool) -> Value {
    let mut rng = Rng::new(11);
    let mut pieces: Vec<String> = "abcde\u{120}".chars().map(String::from).collect();
    pieces.insert(0, "<unk>".into());
    let mut merges = Vec::new();
    while merges.len() < 250 {
        let mut pick = || pieces[1 + rng.below(pieces.len() as u64 - 1) as usize].clone();
        let (left, right) = (pick(), pick());
        let whole = format!("{left}{right}");
        if whole.chars().count() > 6 || merges.contains(&json!([left, right])) {
            continue;
        }
        if !pieces.contains(&whole) {
            pieces.push(whole);
        }
        merges.push(json!([left, right]));
    }
    let vocab: BTreeMap<&String, usize> = pieces.iter().zip(0..).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [{"id": pieces.len(), "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "decoder": null,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "<unk>", "ignore_merges": ignore_merges},
    })
}

#[test]
fn byte_pairs_keep_every_merge_that_makes_a_kept_piece() {
    for ignore_merges in [false, true] {
        let json = bpe(ignore_merges);
        let corpus = texts("abcde", 12);
        let (new, report) = trimmed(&json, &corpus, 0);
        assert!(new.vocab_size() < report.before, "{}", new.vocab_size());
        let written: Value = serde_json::from_slice(&report.json).unwrap();
        let merges = written["model"]["merges"].as_array().unwrap();
        assert!(
            !merges.is_empty() && merges.len() < 250,
            "{} merges",
            merges.len()
        );
        assert_eq!(
            new.token_to_id("<|end|>"),
            Some(report.rows.len() as u32 - 1)
        );
        // The alphabet is whole, so any text over it can be spelt.
        for letter in ["a", "b", "c", "d", "e", "\u{120}"] {
            assert!(new.token_to_id(letter).is_some(), "{letter}");
        }
    }
}

#[test]
fn what_is_no_tokenizer_is_refused() {
    let refused =
        |json: &str| trim_tokenizer("test", json.as_bytes(), &BTreeSet::from([1]), 0).unwrap_err();
    assert_eq!(refused("{").kind(), "InvalidTokenizer");
    assert_eq!(
        refused(r#"{"model": {"type": "Novel", "vocab": {}}}"#).kind(),
        "InvalidTokenizer"
    );
}
