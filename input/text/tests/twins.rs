//! Our tokenizer against Hugging Face `tokenizers`: the same ids for random vocabularies, random
//! settings and random texts, alone, in pairs, and cut to a length.
#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use proptest::prelude::*;
use serde_json::{Value, json};

use support::twins::{Twins, around, mapped};

/// Letters that pieces and texts share: ASCII, two bytes, three, four, marks, the word mark.
const LETTERS: &[&str] = &["a", "b", "c", "é", "▁", "野", "\u{301}", "😀", "!"];

/// What only texts hold.
const STRANGE: &[&str] = &[
    " ",
    " ",
    " ",
    "x",
    "A",
    "É",
    "İ",
    "ß",
    "\u{0}",
    "\t",
    "\n",
    "\u{a0}",
    "\u{200d}",
    "\u{3000}",
    "\u{fffd}",
    "\u{feff}",
    "ﬀ",
    "한",
    "Ǆ",
    "…",
    "<unk>",
    "<s>",
    "[CLS]",
    "\u{10ffff}",
];

fn joined(parts: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(parts), 0..most).prop_map(|parts| parts.concat())
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => prop::sample::select(LETTERS),
        1 => prop::sample::select(STRANGE),
    ];
    prop_oneof![
        4 => prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat()),
        1 => any::<String>(),
    ]
}

fn metaspace(split: bool) -> Value {
    json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": split})
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn unigram(
        pieces in prop::collection::vec((joined(LETTERS, 5), -6_i8..3), 0..40),
        singles in any::<bool>(),
        unknown in prop::option::weighted(0.9, 0_usize..3),
        byte_fallback in any::<bool>(),
        bytes in any::<bool>(),
        split in any::<bool>(),
        texts in prop::collection::vec(text(), 1..6),
        room in 1_usize..12,
    ) {
        let mut vocab = vec![json!(["<unk>", 0.0]), json!(["<s>", -1.0]), json!(["[CLS]", -2.5])];
        if singles {
            vocab.extend(LETTERS.iter().map(|letter| json!([letter, -4.0])));
        }
        if bytes {
            vocab.extend((0..=255).map(|byte| json!([format!("<0x{byte:02X}>"), -9.0])));
        }
        // Quarters, so that sums tie often.
        vocab.extend(pieces.iter().map(|(piece, score)| json!([piece, f64::from(*score) / 4.0])));
        let json = around(Value::Null, metaspace(split), json!({
            "type": "Unigram", "unk_id": unknown, "byte_fallback": byte_fallback, "vocab": vocab,
        }));
        Twins::new(&json).agree_on(&texts, room);
    }

    #[test]
    fn wordpiece_after_bert(
        pieces in prop::collection::vec((any::<bool>(), joined(LETTERS, 4)), 0..40),
        singles in any::<bool>(),
        (clean, cjk, lower) in any::<(bool, bool, bool)>(),
        accents in any::<Option<bool>>(),
        longest in prop::sample::select(&[1_usize, 5, 100][..]),
        unknown in prop::sample::select(&["<unk>", "<none>"][..]),
        texts in prop::collection::vec(text(), 1..6),
        room in 1_usize..12,
    ) {
        let mut words: Vec<String> = pieces
            .into_iter()
            .map(|(continues, piece)| if continues { format!("##{piece}") } else { piece })
            .collect();
        if singles {
            words.extend(LETTERS.iter().flat_map(|l| [(*l).to_owned(), format!("##{l}")]));
        }
        let json = around(
            json!({"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": cjk,
                "strip_accents": accents, "lowercase": lower}),
            json!({"type": "BertPreTokenizer"}),
            json!({"type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##",
                "max_input_chars_per_word": longest, "vocab": mapped(&words)}),
        );
        Twins::new(&json).agree_on(&texts, room);
    }

    #[test]
    fn bpe(
        letters in prop::sample::subsequence(LETTERS, 1..LETTERS.len()),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..25),
        unknown in prop::option::of(prop::sample::select(&["<unk>", "<none>"][..])),
        (fuse, byte_fallback, bytes, ignore_merges) in any::<(bool, bool, bool, bool)>(),
        tuples in any::<bool>(),
        texts in prop::collection::vec(text(), 1..6),
        room in 1_usize..12,
    ) {
        let mut pieces: Vec<String> = letters.iter().map(|l| (*l).to_owned()).collect();
        let mut merges: Vec<(String, String)> = vec![];
        for (left, right) in picks {
            let (left, right) = (left.get(&pieces).clone(), right.get(&pieces).clone());
            let whole = format!("{left}{right}");
            if whole.len() < 40 && !merges.contains(&(left.clone(), right.clone())) {
                merges.push((left, right));
                pieces.push(whole);
            }
        }
        if bytes {
            pieces.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        }
        let merges: Vec<Value> = merges
            .iter()
            .map(|(left, right)| if tuples { json!([left, right]) } else { json!(format!("{left} {right}")) })
            .collect();
        let json = around(Value::Null, metaspace(true), json!({
            "type": "BPE", "dropout": null, "unk_token": unknown, "fuse_unk": fuse,
            "byte_fallback": byte_fallback, "ignore_merges": ignore_merges,
            "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "vocab": mapped(&pieces), "merges": merges,
        }));
        Twins::new(&json).agree_on(&texts, room);
    }

    #[test]
    fn bpe_with_affixes(
        letters in prop::sample::subsequence(&LETTERS[..4], 1..4),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..15),
        texts in prop::collection::vec(text(), 1..6),
        room in 1_usize..12,
    ) {
        // Starts of words plain, continuations with ##, ends with </w>.
        let mut starts: Vec<String> = letters.iter().map(|l| (*l).to_owned()).collect();
        let continuations: Vec<String> = letters
            .iter()
            .flat_map(|l| [format!("##{l}"), format!("##{l}</w>")])
            .collect();
        let mut merges = vec![];
        for (left, right) in picks {
            let (left, right) = (left.get(&starts).clone(), right.get(&continuations).clone());
            let whole = format!("{left}{}", &right[2..]);
            if !left.ends_with("</w>") && whole.len() < 30 {
                merges.push(json!(format!("{left} {right}")));
                starts.push(whole);
            }
        }
        starts.extend(letters.iter().map(|l| format!("{l}</w>")));
        starts.extend(continuations);
        let json = around(Value::Null, json!({"type": "Whitespace"}), json!({
            "type": "BPE", "unk_token": "<unk>", "continuing_subword_prefix": "##",
            "end_of_word_suffix": "</w>", "vocab": mapped(&starts), "merges": merges,
        }));
        Twins::new(&json).agree_on(&texts, room);
    }

    #[test]
    fn wordlevel(
        pieces in prop::collection::vec(joined(LETTERS, 4), 0..30),
        normalizer in prop::sample::select(&["NFD", "NFC", "NFKC", "Lowercase", "StripAccents"][..]),
        texts in prop::collection::vec(text(), 1..6),
        room in 1_usize..12,
    ) {
        let json = around(
            json!({"type": normalizer}),
            json!({"type": "WhitespaceSplit"}),
            json!({"type": "WordLevel", "unk_token": "<unk>", "vocab": mapped(&pieces)}),
        );
        Twins::new(&json).agree_on(&texts, room);
    }
}

#[test]
fn roberta_and_bert_processors_and_byte_level() {
    let letters: Vec<String> = (33_u8..127).map(|b| char::from(b).to_string()).collect();
    let mut pieces = letters;
    pieces.extend([
        "Ġ".to_owned(),
        "Ã".to_owned(),
        "©".to_owned(),
        "he".to_owned(),
        "Ġhe".to_owned(),
    ]);
    let processors = [
        json!({"type": "RobertaProcessing", "sep": ["<s>", 1], "cls": ["[CLS]", 2],
            "trim_offsets": true, "add_prefix_space": true}),
        json!({"type": "BertProcessing", "sep": ["<s>", 1], "cls": ["[CLS]", 2]}),
        Value::Null,
        json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
    ];
    for processor in processors {
        let mut json = around(
            Value::Null,
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}),
            json!({"type": "BPE", "unk_token": "<unk>", "vocab": mapped(&pieces), "merges": ["h e", "Ġ he"]}),
        );
        json["post_processor"] = processor;
        let texts: Vec<String> = [
            "he said: 'he's the café'",
            "",
            "  \n",
            "<s> he <unk>he[CLS]",
            "1 22 he",
        ]
        .map(str::to_owned)
        .to_vec();
        Twins::new(&json).agree_on(&texts, 3);
    }
}

#[test]
fn a_large_multilingual_vocabulary() {
    let json = support::xlmr::tokenizer_json(11, 20_000);
    let mut twins = Twins::new(&serde_json::from_str(&json).unwrap());
    let texts: Vec<String> = (0..200)
        .map(|seed| support::xlmr::text(seed, 1 + seed as usize % 60))
        .chain(["..........", "hahahahahaha ha", "<mask> a  <mask></s>"].map(str::to_owned))
        .collect();
    twins.agree_on(&texts, 20);
}
