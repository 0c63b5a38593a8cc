//! Pairs in the words of a chat template: the ids of the whole text, of which only the two texts are cut.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;

use isovec_tokenize::{Encoding, Limits, PairFrame, Tokenizer, TruncationSide};
use proptest::prelude::*;
use serde_json::json;

/// Words of bytes, where the space before a letter is part of its token, as in the vocabularies of decoders.
fn tokenizer() -> Tokenizer {
    let letters = [
        "q", "d", "t", ":", "a", "b", "Ġ", "Ċ", "Ġa", "Ġb", "ab", "Ġab", "<", ">",
    ];
    let vocabulary: serde_json::Map<String, serde_json::Value> = letters
        .iter()
        .enumerate()
        .map(|(id, letter)| ((*letter).to_owned(), id.into()))
        .collect();
    let end = json!({
        "id": 14, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true
    });
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [end], "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "<end>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<end>": {"id": "<end>", "ids": [14], "tokens": ["<end>"]}}
        },
        "decoder": null,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": vocabulary,
            "merges": [["Ġ", "a"], ["Ġ", "b"], ["a", "b"], ["Ġa", "b"]]
        }
    });
    let files = BTreeMap::from([("tokenizer.json".to_owned(), file.to_string().into())]);
    Tokenizer::from_files(&files, "a test").unwrap()
}

const TEMPLATE: &str = "{%- for m in messages -%}
{%- if m.role == 'system' %}{{ 't: ' + m['content'] + '\\n' }}{% endif -%}
{%- if m.role == 'query' %}q: {{ m.content }}{% endif -%}
{%- if m.role == 'document' %} d: {{ m.content }}{{ eos_token }}{% endif -%}
{%- endfor -%}
";

fn frame() -> PairFrame {
    let variables = BTreeMap::from([("eos_token".to_owned(), json!("<end>"))]);
    PairFrame::of_chat(TEMPLATE, &variables).unwrap()
}

/// What the template writes.
fn written(task: &str, first: &str, second: &str) -> String {
    let task = match task {
        "" => String::new(),
        task => format!("t: {task}\n"),
    };
    format!("{task}q: {first} d: {second}<end>")
}

/// The ids of a text without the special token behind it.
fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let encoded = tokenizer.encode(&[text], &Limits::default()).unwrap();
    let mut ids = encoded[0].ids.clone();
    assert_eq!(ids.pop(), Some(14));
    ids
}

fn encode(task: &str, texts: [&str; 2], limits: Limits) -> Encoding {
    tokenizer()
        .encode_framed(&frame(), task, texts, &limits)
        .unwrap()
}

#[test]
fn a_token_reaches_from_the_words_into_a_text() {
    let whole = encode("", ["ab", "b"], Limits::default());
    // "q", ":", " ab", " d"..., and not a space of its own before "ab".
    assert_eq!(whole.ids, [0, 3, 11, 6, 1, 3, 9, 14]);
    assert_eq!(whole.type_ids, vec![0; 8]);
    assert_eq!(
        (whole.truncated, whole.tokens_before_truncation),
        (false, 8)
    );
}

#[test]
fn only_texts_are_cut_and_the_longer_one_first() {
    let long = ["a a", "b b b b b b b ab"];
    let all = encode("", long, Limits::default()).ids;
    assert_eq!(all.len(), 16);
    let cut = |limits| {
        let encoding = encode("", long, limits);
        assert!(encoding.truncated);
        assert_eq!(encoding.tokens_before_truncation, 16);
        encoding.ids
    };
    let limits = Limits::tokens(11);
    // The space before the first "b" is a part of its token.
    assert_eq!(cut(limits), [0, 3, 8, 8, 6, 1, 3, 9, 9, 9, 14]);
    let side = |truncation_side| Limits {
        truncation_side,
        ..limits
    };
    assert_eq!(
        cut(side(TruncationSide::Start)),
        [0, 3, 8, 8, 6, 1, 3, 9, 9, 11, 14]
    );
    let error = tokenizer()
        .encode_framed(&frame(), "", long, &Limits::tokens(4))
        .unwrap_err();
    assert_eq!(error.kind(), "LimitTooSmall");
}

#[test]
fn templates_that_write_no_pair_are_refused() {
    let fault = |template: &str| PairFrame::of_chat(template, &BTreeMap::new()).unwrap_err();
    assert!(fault("q: {{ messages[0].content }}").contains("role \"document\""));
    assert!(fault("{{ messages[1].content }}").contains("role \"query\""));
    assert!(fault("{{ x").contains("not closed"));
    assert!(
        fault(&format!(
            "{{{{ raise_exception('{}') }}}}",
            "no".repeat(999)
        ))
        .len()
            < 400
    );
    assert!(fault("{{ x y }}").contains("syntax error"));
    assert!(fault(&" ".repeat((64 << 10) + 1)).contains("bytes"));
    assert!(fault("{{ 'x' * 9999999999 }}").len() < 200);
    // Nobody asked for an instruction.
    let silent = PairFrame::of_chat(
        "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}",
        &BTreeMap::new(),
    );
    assert!(!silent.unwrap().takes_instruction());
    assert!(frame().takes_instruction());
}

#[test]
fn frames_that_write_other_words_have_other_names() {
    let named = |template: &str| {
        PairFrame::of_chat(template, &BTreeMap::new())
            .unwrap()
            .identity()
    };
    let plain = "{{ messages[-2].content }} {{ messages[-1].content }}";
    assert_eq!(named(plain), named(&format!("{{# a comment #}}{plain}")));
    assert_ne!(named(plain), named(&format!("{plain}.")));
    let instructed =
        format!("{{% if messages|length > 2 %}}{{{{ messages[0].content }}}}{{% endif %}}{plain}");
    assert_ne!(named(plain), named(&instructed));
}

proptest! {
    #[test]
    fn the_ids_are_those_of_the_whole_text(task in "[ab ]{0,6}", first in "[ab ]{0,12}", second in "[ab\n ]{0,12}") {
        let tokenizer = tokenizer();
        let encoding = encode(&task, [&first, &second], Limits::default());
        prop_assert_eq!(encoding.ids, ids(&tokenizer, &written(&task, &first, &second)));
    }

    #[test]
    fn a_limit_holds_and_leaves_the_words(first in "[ab ]{0,30}", second in "[ab ]{0,30}", limit in 16usize..40) {
        let whole = encode("a", [&first, &second], Limits::default());
        let cut = encode("a", [&first, &second], Limits::tokens(limit));
        prop_assert_eq!(cut.truncated, whole.ids.len() > limit);
        prop_assert_eq!(cut.ids.len(), whole.ids.len().min(limit));
        prop_assert_eq!(cut.tokens_before_truncation, whole.ids.len());
        // "t", ":", " a", a new line, "q", ":" before the texts, and the end behind them.
        prop_assert_eq!(&cut.ids[..6], &whole.ids[..6]);
        prop_assert_eq!(cut.ids.last(), Some(&14));
        let places = |ids: &[u32]| ids.windows(2).filter(|two| two == &[1, 3]).count();
        prop_assert_eq!(places(&cut.ids), 1, "the words between the texts stay");
    }
}
