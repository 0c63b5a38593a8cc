//! Which tokens of a text a model reads: all, its own, or those that are known.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_tokenize::{Limits, Tokenizer, Tokens};
use serde_json::{Value, json};

use support::bundle;

fn file() -> Value {
    json!({
        "version": "1.0",
        "added_tokens": [{"id": 3, "content": "<x>", "special": true}],
        "truncation": {"max_length": 2},
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {"type": "BertProcessing", "sep": ["s", 7], "cls": ["c", 8]},
        "model": {
            "type": "WordLevel", "unk_token": "<unk>",
            "vocab": {"<unk>": 0, "a": 1, "b": 2},
        },
    })
}

fn load(json: &Value) -> Tokenizer {
    Tokenizer::from_files(&bundle(json.to_string().into_bytes()), "here").unwrap()
}

fn ids(tokenizer: &Tokenizer, text: &str, limits: &Limits) -> Vec<u32> {
    let encoding = tokenizer.encode(&[text], limits).unwrap().remove(0);
    assert_eq!(encoding.type_ids.len(), encoding.ids.len());
    encoding.ids
}

#[test]
fn special_and_unknown_tokens_are_left_out() {
    let text = "A ? b <x> ? ? a";
    for (tokens, expected, special, max_id) in [
        (Tokens::All, &[8, 1, 0, 2, 3, 0, 0, 1, 7][..], 2, 8),
        (Tokens::OfText, &[1, 0, 2, 3, 0, 0, 1], 0, 3),
        (Tokens::Known, &[1, 2, 3, 1], 0, 3),
    ] {
        let tokenizer = load(&file()).with_tokens(tokens);
        assert_eq!(ids(&tokenizer, text, &Limits::default()), expected);
        assert_eq!(tokenizer.count_tokens(text).unwrap(), expected.len());
        assert_eq!(tokenizer.special_tokens_count(), special);
        assert_eq!(tokenizer.max_id(), max_id);
    }
}

/// The limit is on what is left.
#[test]
fn what_is_left_out_takes_no_room() {
    let tokenizer = load(&file()).with_tokens(Tokens::Known);
    let text = "? a ? ? b a";
    assert_eq!(ids(&tokenizer, text, &Limits::tokens(2)), [1, 2]);
    let encoding = &tokenizer.encode(&[text], &Limits::tokens(3)).unwrap()[0];
    assert_eq!(
        (encoding.truncated, encoding.tokens_before_truncation),
        (false, 3)
    );
    let both = tokenizer
        .encode_pair("a ?", "? b", &Limits::default())
        .unwrap();
    assert_eq!(both.ids, [1, 2]);
    // Nothing is left of it, and several texts do not mix.
    let all = tokenizer
        .encode(&["? ?", "b", "?"], &Limits::default())
        .unwrap();
    let all: Vec<&[u32]> = all.iter().map(|encoding| &encoding.ids[..]).collect();
    assert_eq!(all, [&[][..], &[2], &[]]);
}

/// A unigram's unknown piece has a number and no name: Model2Vec's library keeps it.
#[test]
fn an_unknown_token_without_a_name_is_kept() {
    let mut json = file();
    json["model"] = json!({
        "type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -2.0]],
    });
    let tokenizer = load(&json).with_tokens(Tokens::Known);
    assert_eq!(ids(&tokenizer, "a ? b", &Limits::default()), [1, 0, 2]);
}

#[test]
fn which_tokens_is_part_of_the_identity() {
    let identity = |tokens| load(&file()).with_tokens(tokens).identity();
    let all = [Tokens::All, Tokens::OfText, Tokens::Known].map(identity);
    assert_eq!(all[0], load(&file()).identity());
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
}

#[test]
fn the_files_own_length_is_told() {
    assert_eq!(load(&file()).own_max_tokens(), Some(2));
    for (truncation, length) in [
        (json!(null), None),
        (json!({"max_length": 0}), None),
        (json!({"max_length": "x"}), None),
        (json!({"direction": "Right"}), None),
        (
            json!({"max_length": 512, "strategy": "LongestFirst"}),
            Some(512),
        ),
    ] {
        let mut json = file();
        json["truncation"] = truncation;
        assert_eq!(load(&json).own_max_tokens(), length);
    }
}

#[test]
fn a_folder_comes_before_the_root() {
    let mut files = bundle(file().to_string().into_bytes());
    let mut other = file();
    other["model"]["vocab"] = json!({"<unk>": 0, "a": 2});
    files.insert(
        "0_Static/tokenizer.json".into(),
        other.to_string().into_bytes().into(),
    );
    let of = |folder| Tokenizer::from_folder(&files, folder, "here").unwrap();
    assert_eq!(of("0_Static").token_to_id("a"), Some(2));
    for folder in ["", "1_Other"] {
        assert_eq!(of(folder).token_to_id("a"), Some(1));
    }
}

/// Classes that write the template anew when they load put the token there that the file lacks.
#[test]
fn the_end_that_a_class_adds_is_added() {
    let load = |config: Value| {
        let mut file = file();
        file["post_processor"] = json!({
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<x>": {"id": "<x>", "ids": [3], "tokens": ["<x>"]}}
        });
        let mut files = bundle(file.to_string().into_bytes());
        files.insert("tokenizer_config.json".into(), config.to_string().into());
        Tokenizer::from_files(&files, "here")
    };
    let config = |class: &str, add: bool| json!({"tokenizer_class": class, "add_eos_token": add, "eos_token": {"content": "b"}});
    let plain = load(json!({})).unwrap();
    assert_eq!(ids(&plain, "a a", &Limits::default()), [3, 1, 1]);
    for class in ["LlamaTokenizer", "GemmaTokenizerFast"] {
        let ended = load(config(class, true)).unwrap();
        assert_eq!(ids(&ended, "a a", &Limits::default()), [3, 1, 1, 2]);
        assert_eq!(ids(&ended, "a a a", &Limits::tokens(4)), [3, 1, 1, 2]);
        let pair = ended.encode_pair("a", "a a", &Limits::default()).unwrap();
        assert_eq!(pair.ids, [1, 2, 1, 1, 2]);
        assert_ne!(ended.identity(), plain.identity());
    }
    for (class, add) in [("LlamaTokenizer", false), ("Qwen2Tokenizer", true)] {
        let same = load(config(class, add)).unwrap();
        assert_eq!(ids(&same, "a a", &Limits::default()), [3, 1, 1]);
        assert_eq!(same.identity(), plain.identity());
    }
    let lacking =
        json!({"tokenizer_class": "LlamaTokenizer", "add_eos_token": true, "eos_token": "</s>"});
    let error = load(lacking).unwrap_err();
    assert!(error.to_string().contains("</s>"), "{error}");
}
