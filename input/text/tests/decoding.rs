//! Token ids back to text: the same text as Hugging Face `tokenizers` makes of random ids.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use isovec_tokenize::{TokenizeError, Tokenizer};
use proptest::prelude::*;
use serde_json::{Value, json};

use support::bundle;
use support::twins::Twins;

/// Pieces with every mark that a decoder looks for.
const PIECES: [&str; 30] = [
    "<unk>", "<s>", "[CLS]", "a", "##b", "##", "▁", "▁a", "a▁b▁", "é", "Ġ", "Ġa", "Ã", "©", "ĠÃ©",
    "<0xC3>", "<0xA9>", "<0xFF>", "<0xzz>", "a</w>", "</w>", ".", "?", "'", "n't", "'s", "do",
    "not", "  a ", "x",
];

fn file(decoder: &Value) -> Value {
    let vocab: serde_json::Map<String, Value> = (0..)
        .zip(PIECES)
        .map(|(id, piece)| (piece.to_owned(), json!(id)))
        .collect();
    let added = |id: u32, special: bool| {
        json!({"id": id, "content": PIECES[id as usize], "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special})
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [added(0, true), added(1, true), added(2, false)],
        "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null,
        "decoder": decoder,
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab},
    })
}

fn replace(from: &str, to: &str) -> Value {
    json!({"type": "Replace", "pattern": {"String": from}, "content": to})
}

fn step() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(|cleanup| json!({"type": "WordPiece", "prefix": "##", "cleanup": cleanup})),
        prop::sample::select(&["always", "first", "never"][..]).prop_map(|scheme| {
            json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true})
        }),
        Just(json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})),
        Just(json!({"type": "BPEDecoder", "suffix": "</w>"})),
        Just(replace("▁", " ")),
        Just(replace("a", "aba")),
        Just(json!({"type": "ByteFallback"})),
        Just(json!({"type": "Fuse"})),
        // Theirs panics where a piece is shorter than what may be taken off its end.
        (0_usize..3).prop_map(
            |start| json!({"type": "Strip", "content": " ", "start": start, "stop": 0})
        ),
    ]
}

fn decoder() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        4 => step(),
        4 => prop::collection::vec(step(), 0..4).prop_map(|steps| json!({"type": "Sequence", "decoders": steps})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(800) })]

    #[test]
    fn ids_are_the_same_text(decoder in decoder(), texts in prop::collection::vec(prop::collection::vec(0_u32..30, 1..12), 1..4), all in any::<bool>()) {
        let Twins { ours, theirs } = Twins::new(&file(&decoder));
        let ids: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        // Theirs panics at a decoder of suffixes that is given no piece.
        let empty = |ids: &[u32]| !all && ids.iter().all(|&id| id < 2);
        let wanted: Vec<String> = ids
            .iter()
            .map(|ids| if empty(ids) { String::new() } else { theirs.decode(ids, !all).unwrap() })
            .collect();
        prop_assert_eq!(ours.decode(&ids, all).unwrap(), wanted);
    }
}

#[test]
fn ends_are_stripped_as_far_as_there_is_something() {
    let strip =
        |start, stop| json!({"type": "Strip", "content": " ", "start": start, "stop": stop});
    let text = |decoder: &Value, id| load(&file(decoder)).decode(&[&[id]], true).unwrap();
    for (start, stop, stripped) in [(0, 0, "  a "), (1, 1, " a"), (2, 2, "a"), (9, 9, "a")] {
        assert_eq!(text(&strip(start, stop), 28), [stripped]);
    }
    let all = json!({"type": "Sequence", "decoders": [replace("a", " "), strip(1, 9)]});
    assert_eq!(text(&all, 3), [""]);
}

fn load(json: &Value) -> Tokenizer {
    Tokenizer::from_files(&bundle(json.to_string().into_bytes()), "here").unwrap()
}

#[test]
fn what_is_not_known_is_an_error_of_decoding_alone() {
    for decoder in [
        json!({"type": "Novel"}),
        json!({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"}),
        json!({"type": "BPEDecoder", "suffix": ""}),
        json!({"type": "Sequence", "decoders": vec![replace("a", "aa"); 100]}),
        json!(7),
    ] {
        let tokenizer = load(&file(&decoder));
        assert!(tokenizer.encode(&["a x"], &Default::default()).is_ok());
        let error = tokenizer.decode(&[&[3]], true).unwrap_err();
        assert_eq!(error.kind(), "Undecodable", "{decoder}");
    }
    let doubles = json!({"type": "Sequence", "decoders": vec![replace("a", "aa"); 40]});
    let error = load(&file(&doubles)).decode(&[&[3]], true).unwrap_err();
    assert!(error.to_string().contains("bytes of the tokens"), "{error}");
}

#[test]
fn ids_beyond_the_vocabulary_are_refused() {
    let tokenizer = load(&file(&Value::Null));
    let limits = Default::default();
    for ids in [&[30][..], &[3, u32::MAX]] {
        let refused = |error| matches!(error, TokenizeError::UnknownId { largest: 29, .. });
        assert!(refused(tokenizer.decode(&[&[3], ids], true).unwrap_err()));
        assert!(refused(tokenizer.encode_ids("", ids, &limits).unwrap_err()));
    }
    assert_eq!(
        tokenizer.decode(&[&[29, 3], &[]], true).unwrap(),
        ["x a", ""]
    );
}

#[test]
fn tokens_have_their_words_and_say_which_are_special() {
    let mut json = file(&Value::Null);
    json["post_processor"] =
        json!({"type": "BertProcessing", "sep": ["<s>", 1], "cls": ["[CLS]", 2]});
    let tokenizer = load(&json);
    let said = |special_tokens| {
        let texts = tokenizer
            .tokens(&["x <s> novel", ""], special_tokens)
            .unwrap();
        let texts = texts.into_iter().map(|tokens| {
            let tokens = tokens
                .into_iter()
                .map(|token| (token.id, token.text, token.special));
            tokens.collect::<Vec<_>>()
        });
        texts.collect::<Vec<_>>()
    };
    let token = |id: u32, special| (id, PIECES[id as usize].to_owned(), special);
    let text = [token(29, false), token(1, false), token(0, false)];
    assert_eq!(said(false), [text.to_vec(), vec![]]);
    let around = |text: &[_]| [&[token(2, true)], text, &[token(1, true)]].concat();
    assert_eq!(said(true), [around(&text), around(&[])]);
}

#[test]
fn a_vocabulary_file_of_bert_decodes_as_word_pieces() {
    let files = [(
        "vocab.txt",
        "[UNK]\n[CLS]\n[SEP]\n[PAD]\nem\n##bed\n,\nyes\n",
    )];
    let files = files.map(|(name, content)| (name.to_owned(), content.into()));
    let tokenizer = Tokenizer::from_files(&files.into(), "here").unwrap();
    assert_eq!(
        tokenizer.decode(&[&[1, 4, 5, 6, 7, 2]], false).unwrap(),
        ["embed, yes"]
    );
}
