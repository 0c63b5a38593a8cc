//! The real tokenizer of all-MiniLM-L6-v2 against ids written down by Python's `tokenizers`.
//!
//! `data/minilm_ids.jsonl` holds `[text, ids]` a line: the reference texts and hostile Unicode,
//! encoded by `tokenizers` 0.23.3 from PyPI with truncation and padding off. The tokenizer itself
//! is where `cargo xtask setup` puts it.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use isovec_tokenize::{Limits, Tokenizer};
use serde_json::Value;

use support::bundle;

const EXPECTED: &str = include_str!("data/minilm_ids.jsonl");

fn file(name: &str) -> Bytes {
    let cache = std::env::var_os("ISOVEC_CACHE").map_or_else(
        || {
            let home = std::env::var_os("HOME").expect("HOME or ISOVEC_CACHE is set");
            PathBuf::from(home).join(".cache/isovec")
        },
        PathBuf::from,
    );
    let path = cache.join("models/all-MiniLM-L6-v2").join(name);
    match std::fs::read(&path) {
        Ok(content) => content.into(),
        Err(error) => panic!("{}: {error}; run `cargo xtask setup` first", path.display()),
    }
}

fn expected() -> Vec<(String, Vec<u32>)> {
    EXPECTED
        .lines()
        .map(|line| serde_json::from_str(line).expect("[text, ids]"))
        .collect()
}

#[test]
fn the_ids_are_those_of_python() {
    let tokenizer = Tokenizer::from_files(&bundle(file("tokenizer.json")), "MiniLM").unwrap();
    let expected = expected();
    assert!(expected.len() > 150);
    let texts: Vec<&str> = expected.iter().map(|(text, _)| text.as_str()).collect();
    let encodings = tokenizer.encode(&texts, &Limits::default()).unwrap();
    let cut = tokenizer.encode(&texts, &Limits::tokens(16)).unwrap();
    for (((text, ids), encoding), cut) in expected.iter().zip(&encodings).zip(&cut) {
        assert_eq!(&encoding.ids, ids, "{text:?}");
        assert_eq!(encoding.type_ids, vec![0; ids.len()]);
        assert_eq!(tokenizer.count_tokens(text).unwrap(), ids.len());
        let alone = tokenizer.encode(&[text], &Limits::default()).unwrap();
        assert_eq!(&alone[0], encoding);

        let kept = ids.len().min(16);
        assert_eq!(cut.ids.len(), kept);
        assert_eq!(cut.ids[..kept - 1], ids[..kept - 1], "{text:?}");
        assert_eq!(cut.ids.last(), ids.last());
        assert_eq!(cut.truncated, ids.len() > 16);
        assert_eq!(cut.tokens_before_truncation, ids.len());
    }
}

#[test]
fn what_the_file_says_about_itself() {
    let tokenizer = Tokenizer::from_files(&bundle(file("tokenizer.json")), "MiniLM").unwrap();
    assert_eq!(tokenizer.model_kind(), "WordPiece");
    assert_eq!(tokenizer.vocab_size(), 30_522);
    assert_eq!(tokenizer.max_id(), 30_521);
    assert_eq!((tokenizer.pad_id(), tokenizer.pad_type_id()), (0, 0));
    assert_eq!(tokenizer.special_tokens_count(), 2);
    assert_eq!(tokenizer.special_tokens_count_pair(), 3);
    assert_eq!(tokenizer.token_to_id("[CLS]"), Some(101));
    assert_eq!(tokenizer.token_to_id("##ing"), Some(2075));
    assert_eq!(tokenizer.token_to_id("not a token"), None);
}

#[test]
fn a_pair_keeps_both_texts() {
    let tokenizer = Tokenizer::from_files(&bundle(file("tokenizer.json")), "MiniLM").unwrap();
    let pair = tokenizer
        .encode_pair(
            "How many people live in Berlin?",
            "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
            &Limits::tokens(16),
        )
        .unwrap();
    // Python's, with enable_truncation(16).
    assert_eq!(
        pair.ids,
        [
            101, 2129, 2116, 2111, 2444, 1999, 4068, 102, 4068, 2038, 1037, 2313, 1997, 1017, 1010,
            102
        ]
    );
    assert_eq!(
        pair.type_ids,
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    );
    assert!(pair.truncated);
}

#[test]
fn the_old_vocabulary_file_gives_the_same_ids() {
    let old = BTreeMap::from(
        ["vocab.txt", "tokenizer_config.json"].map(|name| (name.to_owned(), file(name))),
    );
    let old = Tokenizer::from_files(&old, "MiniLM").unwrap();
    for (text, ids) in expected() {
        let encoding = old.encode(&[&text], &Limits::default()).unwrap();
        assert_eq!(encoding[0].ids, ids, "{text:?}");
    }
    assert_eq!(old.pad_id(), 0);
    assert_eq!(old.model_max_tokens(), Some(512));
}

#[test]
fn the_identity_outlives_layout_padding_and_truncation() {
    let json = file("tokenizer.json");
    let plain = Tokenizer::from_files(&bundle(json.clone()), "MiniLM").unwrap();
    let mut changed: Value = serde_json::from_slice(&json).unwrap();
    changed["padding"] = Value::Null;
    changed["truncation"] = Value::Null;
    let pretty = serde_json::to_vec_pretty(&changed).unwrap();
    let same = Tokenizer::from_files(&bundle(pretty), "MiniLM").unwrap();
    assert_eq!(plain.identity(), same.identity());
    assert_eq!(same.pad_id(), 0);

    changed["normalizer"]["lowercase"] = Value::Bool(false);
    let other = serde_json::to_vec(&changed).unwrap();
    let other = Tokenizer::from_files(&bundle(other), "MiniLM").unwrap();
    assert_ne!(plain.identity(), other.identity());
}

#[test]
fn a_megabyte_of_text_is_counted_and_cut() {
    let tokenizer = Tokenizer::from_files(&bundle(file("tokenizer.json")), "MiniLM").unwrap();
    let words = "seven words make up this little sentence ".repeat(25_000);
    let encoding = &tokenizer.encode(&[&words], &Limits::tokens(256)).unwrap()[0];
    assert_eq!(encoding.ids.len(), 256);
    assert_eq!(encoding.ids.last(), Some(&102));
    assert!(encoding.truncated);
    assert_eq!(encoding.tokens_before_truncation, 7 * 25_000 + 2);

    // One word of a megabyte is one unknown token, at once.
    let word = "x".repeat(1_000_000);
    let encoding = &tokenizer.encode(&[&word], &Limits::tokens(256)).unwrap()[0];
    assert_eq!(encoding.ids, [101, 100, 102]);
    assert!(!encoding.truncated);
}

#[test]
fn encoding_from_several_threads_gives_the_same() {
    let tokenizer = Tokenizer::from_files(&bundle(file("tokenizer.json")), "MiniLM").unwrap();
    let expected = expected();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (text, ids) in &expected {
                    let encoding = tokenizer.encode(&[text], &Limits::default()).unwrap();
                    assert_eq!(&encoding[0].ids, ids);
                }
            });
        }
    });
    // Enough text for the parallel way, where that is compiled in.
    let many: Vec<&str> = expected
        .iter()
        .cycle()
        .take(2000)
        .map(|(text, _)| text.as_str())
        .collect();
    let encodings = tokenizer.encode(&many, &Limits::default()).unwrap();
    for (encoding, (_, ids)) in encodings.iter().zip(expected.iter().cycle()) {
        assert_eq!(&encoding.ids, ids);
    }
}
